//! The unit of work of one batch: rows read so far, what was decided about them, and what is to be written.
//!
//! Every change of a job goes through [`Work::record`], which takes a [`Step`] of the one decider and keeps everything
//! that belongs to it together: row, history, ledger, who is to be woken. Nothing reaches the store before
//! [`Work::flush`]; nothing is durable before the commit.

mod damage;
mod depth;
mod flush;
mod limits;
mod policy;
mod turns;
mod versions;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tagwerk_core::{
    Action, Answer, Attempt, AttemptEnd, Call, Ctx, Event, History, JobId, Outcome, Status, Step, Timestamp,
};

use crate::id_map::IdMap;
use crate::ports::Entropy;
use crate::row::{
    ActionRow, Counter, Detail, FullJob, JobRow, KeyRow, KeyWrite, Lane, LaneId, QueueRow, Tally,
    TypeSettings, VersionRow, VersionWrite, Versioned,
};
use crate::settings::{LeaseToken, Settings};
use crate::store::{PayloadWrite, StoreError, StoreResult, Tx, Unreadable};
use crate::tokens::Tokens;

/// How much of a job an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Everything: answers about one job.
    Whole,
    /// The payload is left empty: bulk answers, whose size must not depend on payloads.
    WithoutPayload,
    /// Only the row: the answer to a heartbeat, which is sent often and shows nothing of the rest.
    RowOnly,
}

impl View {
    pub(crate) const fn of(items: usize) -> Self {
        if items == 1 { Self::Whole } else { Self::WithoutPayload }
    }
}

/// What a batch is executed with.
pub(crate) struct Env<'a> {
    pub(crate) now: Timestamp,
    pub(crate) settings: &'a Settings,
    pub(crate) types: &'a HashMap<String, TypeSettings>,
    /// Names of the limits that there are.
    pub(crate) limits: &'a BTreeSet<String>,
    /// What is said about queues; none about most.
    pub(crate) queues: &'a HashMap<String, QueueRow>,
    pub(crate) tokens: &'a Tokens,
    pub(crate) entropy: &'a dyn Entropy,
}

/// A job as this batch knows it.
struct Entry {
    stored: Stored,
    /// As it is to be.
    after: JobRow,
    /// Cold part, if it was needed.
    detail: Option<Detail>,
    /// Whether it stands in `Work::dirty`.
    dirty: bool,
}

/// How the store has a job of this batch.
enum Stored {
    /// Not yet: it is to be inserted.
    No,
    /// As it is known here.
    Same,
    /// Still as it was read.
    Was(Box<JobRow>),
}

/// What the batch did that others must learn of once it is committed.
#[derive(Default)]
pub(crate) struct Effects {
    /// Jobs that came to rest.
    pub(crate) settled: Vec<JobId>,
    /// Jobs that became claimable at once, by lane.
    pub(crate) readied: BTreeMap<Lane, usize>,
    /// Jobs that will become due: the earliest instant by lane.
    pub(crate) due_later: BTreeMap<Lane, Timestamp>,
    /// Slots of limits that became free, and whatever else may let waiting jobs through.
    pub(crate) opened: usize,
    /// Limits that came into being with jobs that name them.
    pub(crate) limits_made: BTreeSet<String>,
    /// Queues that are no longer paused: their jobs are claimable again.
    pub(crate) resumed: BTreeSet<String>,
    /// Attempts that ended by a report: type and run time in milliseconds.
    pub(crate) ended: Vec<(std::sync::Arc<str>, i64)>,
    /// Jobs that a worker gave back: who and which.
    pub(crate) released: Vec<(String, JobId)>,
    /// Workers whose calls were accepted.
    pub(crate) heard: Vec<String>,
}

pub(crate) struct Work<'a> {
    pub(crate) tx: &'a mut dyn Tx,
    pub(crate) env: &'a Env<'a>,
    entries: IdMap<JobId, Option<Entry>>,
    /// Jobs that were named and cannot be read, wholly or in part.
    damaged: HashMap<JobId, Unreadable>,
    /// Jobs to be written, in the order in which they were first touched.
    dirty: Vec<JobId>,
    keys: HashMap<String, Option<KeyRow>>,
    key_writes: Vec<KeyWrite>,
    versions: HashMap<Versioned, Option<VersionRow>>,
    version_writes: Vec<VersionWrite>,
    attempts: Vec<(JobId, Attempt)>,
    refused: Vec<(JobId, u32, Call, Timestamp)>,
    actions: Vec<ActionRow>,
    payloads: Vec<PayloadWrite>,
    ledger: BTreeMap<LaneId, Tally>,
    /// Queues with a bound that was asked about.
    depths: depth::Depths,
    /// Only if the batch meets jobs with an ordering key.
    orders: Option<Box<turns::Orders>>,
    pub(crate) effects: Effects,
    /// Rounds in which claims met jobs past their maximum age.
    pub(crate) expired_by_claims: usize,
}

impl<'a> Work<'a> {
    pub(crate) fn new(tx: &'a mut dyn Tx, env: &'a Env<'a>) -> Self {
        Self {
            tx,
            env,
            entries: IdMap::default(),
            damaged: HashMap::new(),
            dirty: Vec::new(),
            keys: HashMap::new(),
            key_writes: Vec::new(),
            versions: HashMap::new(),
            version_writes: Vec::new(),
            attempts: Vec::new(),
            refused: Vec::new(),
            actions: Vec::new(),
            payloads: Vec::new(),
            ledger: BTreeMap::new(),
            depths: depth::Depths::default(),
            orders: None,
            effects: Effects::default(),
            expired_by_claims: 0,
        }
    }

    // ---- rows ------------------------------------------------------------------------------------------------------

    /// Takes in a row that the store has just given.
    pub(crate) fn adopt(&mut self, row: JobRow) {
        let id = row.job.id;
        if self.entries.get(&id).is_some_and(Option::is_some) {
            return;
        }
        let entry = Entry { stored: Stored::Same, after: row, detail: None, dirty: false };
        self.entries.insert(id, Some(entry));
    }

    /// Adds a job that was just accepted.
    pub(crate) fn create(&mut self, row: JobRow, detail: Detail) {
        let id = row.job.id;
        self.count(row.lane.class, Counter::Enqueued, 1);
        self.count(row.lane.class, Counter::of_status(row.job.status), 1);
        note_waiting((&mut self.effects, self.env.now), &row);
        self.dirty.push(id);
        let entry = Entry { stored: Stored::No, after: row, detail: Some(detail), dirty: true };
        self.entries.insert(id, Some(entry));
    }

    /// The job as it is to be, if it exists.
    pub(crate) fn row(&self, id: JobId) -> Option<&JobRow> {
        self.entries.get(&id)?.as_ref().map(|entry| &entry.after)
    }

    /// Changes what no rule looks at (priority, payload size, notes).
    pub(crate) fn edit(&mut self, id: JobId, change: impl FnOnce(&mut JobRow)) {
        if let Some(Some(entry)) = self.entries.get_mut(&id) {
            mark(&mut self.dirty, id, entry);
            change(&mut entry.after);
        }
    }

    /// Reads the cold parts of these jobs unless they are known.
    pub(crate) fn load_details(&mut self, ids: &[JobId]) -> StoreResult<()> {
        let wanted: Vec<JobId> = ids
            .iter()
            .copied()
            .filter(|id| matches!(self.entries.get(id), Some(Some(entry)) if entry.detail.is_none()))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let details = self.tx.details(&wanted)?;
        let mut met = None;
        for (id, detail) in wanted.into_iter().zip(details) {
            match (detail.unwrap_or_else(|| Err(damaged(id))), self.entries.get_mut(&id)) {
                (Ok(detail), Some(Some(entry))) => entry.detail = Some(detail),
                (Ok(_), _) => {}
                (Err(why), _) => {
                    self.damaged.insert(id, why.clone());
                    met = Some(why);
                }
            }
        }
        met.map_or(Ok(()), |why| Err(why.into()))
    }

    /// The cold part of a job that exists.
    pub(crate) fn detail(&mut self, id: JobId) -> StoreResult<&mut Detail> {
        self.load_details(&[id])?;
        match self.entries.get_mut(&id) {
            Some(Some(Entry { detail: Some(detail), .. })) => Ok(detail),
            _ => Err(damaged(id).into()),
        }
    }

    /// The job as it is to be, for an answer.
    pub(crate) fn full(&mut self, id: JobId, view: View) -> StoreResult<Box<FullJob>> {
        let detail = match view {
            View::Whole => self.detail(id)?.clone(),
            View::WithoutPayload => self.detail_without_payload(id)?,
            View::RowOnly => Detail::default(),
        };
        let row = self.row(id).cloned().ok_or_else(|| damaged(id))?;
        Ok(Box::new(FullJob { row, detail }))
    }

    /// Not kept: whoever hands the job out later in the batch needs its payload.
    fn detail_without_payload(&mut self, id: JobId) -> StoreResult<Detail> {
        if let Some(Some(Entry { detail: Some(detail), .. })) = self.entries.get(&id) {
            return Ok(detail.without_payload());
        }
        let detail = self.tx.details(&[id])?.pop().flatten().unwrap_or_else(|| Err(damaged(id)))?;
        Ok(Detail { payload: String::new(), ..detail })
    }

    /// Writes a new payload.
    pub(crate) fn replace_payload(&mut self, write: PayloadWrite) -> StoreResult<()> {
        let id = write.job;
        self.detail(id)?.payload.clone_from(&write.payload);
        let bytes = u32::try_from(write.payload.len()).unwrap_or(u32::MAX);
        self.edit(id, |row| row.payload_bytes = bytes);
        if !matches!(self.entries.get(&id), Some(Some(Entry { stored: Stored::No, .. }))) {
            self.payloads.push(write);
        }
        Ok(())
    }

    /// Removes a job with everything. Its last state must have been recorded before.
    pub(crate) fn erase(&mut self, ids: &[JobId]) -> StoreResult<()> {
        self.flush()?;
        self.tx.erase(ids)?;
        for id in ids {
            if let Some(row) = self.row(*id) {
                let (lane, status, blocked) = (row.lane.class, row.job.status, row.is_blocked());
                self.count(lane, Counter::Blocked, -i64::from(blocked));
                self.count(lane, Counter::of_status(status), -1);
                self.count(lane, Counter::Pruned, 1);
            }
            self.entries.insert(*id, None);
        }
        Ok(())
    }

    // ---- decisions ---------------------------------------------------------------------------------------------------

    /// Brings a job up to date with time: an attempt that is over ends, a pending job past its maximum age expires.
    pub(crate) fn settle(&mut self, id: JobId) -> StoreResult<()> {
        while let Some(event) = self.row(id).and_then(|row| tagwerk_core::overdue(&row.job, self.env.now)) {
            match self.judge(id, &event)? {
                Ok(step) => self.record(id, &event, step),
                Err(rejection) => {
                    return Err(StoreError::Other(format!("job {id} cannot be settled: {rejection}")));
                }
            }
        }
        Ok(())
    }

    /// Asks the decider. Nothing changes.
    pub(crate) fn judge(
        &mut self,
        id: JobId,
        event: &Event,
    ) -> StoreResult<Result<Step, tagwerk_core::Rejection>> {
        let retry =
            if policy::may_back_off(event) { self.retry_policy(id)? } else { self.env.settings.retry };
        let ctx = Ctx {
            now: self.env.now,
            random: self.env.entropy.u64(),
            retry,
            require_lease: self.env.settings.lease_token == LeaseToken::Required,
        };
        let row = self.row(id).ok_or_else(|| damaged(id))?;
        Ok(tagwerk_core::decide(&row.job, event, &ctx))
    }

    /// Takes over a decision with everything that belongs to it.
    pub(crate) fn record(&mut self, id: JobId, event: &Event, step: Step) {
        if step.answer == Answer::Replayed {
            return;
        }
        let Some(Some(entry)) = self.entries.get_mut(&id) else { return };
        mark(&mut self.dirty, id, entry);
        let before = std::mem::replace(&mut entry.after.job, step.job);
        let lane = entry.after.lane.clone();
        let (status, retried) = (entry.after.job.status, entry.after.job.retry_count > before.retry_count);
        let waits_anew =
            before.status != Status::Pending || before.available_at != entry.after.job.available_at;
        if before.status != status {
            turns::moved(&mut self.orders, &mut entry.after, before.status);
        }
        if status == Status::Pending && waits_anew {
            note_waiting((&mut self.effects, self.env.now), &entry.after);
        }
        if before.status != status {
            if before.status == Status::Running {
                let is_bound = || {
                    self.env.queues.get(&*lane.queue).is_some_and(|row| row.settings.max_running.is_some())
                };
                let opens = lane.special.is_some() || (!self.env.queues.is_empty() && is_bound());
                self.effects.opened += usize::from(opens);
            }
            self.count(lane.class, Counter::of_status(before.status), -1);
            self.count(lane.class, Counter::of_status(status), 1);
            if status == Status::Failed {
                self.count(lane.class, Counter::Reviews, 1);
            }
            if status.is_settled() {
                self.effects.settled.push(id);
            }
        }
        if retried {
            self.count(lane.class, Counter::Retries, 1);
        }
        if step.answer == Answer::Done {
            self.count_event(&lane, event);
        }
        match step.history {
            History::Unchanged => {}
            History::Append(attempt) | History::Amend(attempt) => self.keep_attempt(id, &lane, *attempt),
        }
    }

    fn keep_attempt(&mut self, id: JobId, lane: &Lane, attempt: Attempt) {
        match attempt.end {
            AttemptEnd::LeaseExpired => self.count(lane.class, Counter::LeaseLosses, 1),
            AttemptEnd::TimedOut => self.count(lane.class, Counter::TimeOuts, 1),
            AttemptEnd::Completed | AttemptEnd::Failed(_) => {
                let run_ms = attempt.ended_at.since_ms(attempt.claimed_at).max(0);
                self.effects.ended.push((lane.kind.clone(), run_ms));
            }
            AttemptEnd::Released => self.effects.released.push((attempt.worker.clone(), id)),
            AttemptEnd::Cancelled | AttemptEnd::Forced => {}
        }
        self.attempts.push((id, attempt));
    }

    fn count_event(&mut self, lane: &Lane, event: &Event) {
        let counter = match event {
            Event::Claim(_) => Counter::Claims,
            Event::Report(_, report) | Event::Unheard(_, report) => match report.outcome {
                Outcome::Completed => Counter::Completions,
                Outcome::Failed { .. } => Counter::Failures,
                Outcome::Released { .. } => Counter::Releases,
            },
            Event::Operate { action: Action::Retry { .. } | Action::ForceRetry { .. }, .. } => {
                Counter::ReviewRetries
            }
            Event::Operate { .. }
            | Event::Heartbeat(_)
            | Event::Checkpoint(_)
            | Event::Effect(..)
            | Event::Assume(_)
            | Event::AttemptOver
            | Event::Expire
            | Event::Supersede { .. } => return,
        };
        self.count(lane.class, counter, 1);
    }

    fn count(&mut self, lane: LaneId, counter: Counter, n: i64) {
        self.ledger.entry(lane).or_default().add(counter, n);
    }

    // ---- history -------------------------------------------------------------------------------------------------------

    /// The kept history of a job, including what this batch has added.
    pub(crate) fn history(&mut self, id: JobId) -> StoreResult<Vec<Attempt>> {
        if self.attempts.iter().any(|(job, _)| *job == id) {
            self.flush()?;
        }
        Ok(self.tx.attempts(&[id])?.pop().unwrap_or_default())
    }

    /// Notes a stale call on its attempt.
    pub(crate) fn note_refused(&mut self, id: JobId, seq: u32, call: Call) {
        self.refused.push((id, seq, call, self.env.now));
    }

    /// Notes what an operator did.
    pub(crate) fn note_action(&mut self, id: JobId, call: Call, text: Option<String>) {
        let version = self.row(id).map_or(0, |row| row.job.version);
        self.actions.push(ActionRow { job: id, at: self.env.now, call, version, text });
    }

    // ---- keys ----------------------------------------------------------------------------------------------------------

    /// Reads keys unless they are known.
    pub(crate) fn load_keys(&mut self, keys: &[&str]) -> StoreResult<()> {
        let mut wanted: Vec<&str> =
            keys.iter().copied().filter(|key| !self.keys.contains_key(*key)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(());
        }
        let rows = self.tx.keys(&wanted)?;
        self.keys.extend(wanted.into_iter().map(str::to_owned).zip(rows));
        Ok(())
    }

    /// A key as it is to be.
    pub(crate) fn key(&mut self, key: &str) -> StoreResult<Option<KeyRow>> {
        self.load_keys(&[key])?;
        Ok(self.keys.get(key).cloned().flatten())
    }

    /// Writes a key.
    pub(crate) fn write_key(&mut self, write: KeyWrite) {
        match &write {
            KeyWrite::Insert(row) | KeyWrite::Replace { row, .. } => {
                self.keys.insert(row.key.clone(), Some(row.clone()))
            }
            KeyWrite::Delete { key, .. } => self.keys.insert(key.clone(), None),
        };
        self.key_writes.push(write);
    }
}

/// Before a row is changed.
fn mark(dirty: &mut Vec<JobId>, id: JobId, entry: &mut Entry) {
    if matches!(entry.stored, Stored::Same) {
        entry.stored = Stored::Was(Box::new(entry.after.clone()));
    }
    if !entry.dirty {
        entry.dirty = true;
        dirty.push(id);
    }
}

/// Notes for whom it is good news that a job waits, now or later.
fn note_waiting((effects, now): (&mut Effects, Timestamp), row: &JobRow) {
    let (lane, due) = (&row.lane, row.job.available_at);
    if row.job.status != Status::Pending || row.is_blocked() {
        return;
    }
    if due > now {
        effects.due_later.entry(lane.clone()).and_modify(|t| *t = due.min(*t)).or_insert(due);
    } else if let Some(n) = effects.readied.get_mut(lane) {
        *n += 1;
    } else {
        effects.readied.insert(lane.clone(), 1);
    }
}

fn damaged(id: JobId) -> Unreadable {
    Unreadable(format!("job {id} has no detail row"))
}
