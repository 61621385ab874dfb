//! Who watches: the invariants, each by itself, and the model.

use std::collections::BTreeMap;

use tagwerk_core::{JobId, Timestamp};
use tagwerk_engine::query::{Depth, check, explain, place};
use tagwerk_engine::row::{FullJob, JobRow};
use tagwerk_engine::store::{Listed, Read};

use super::{Lived, Stop, World, turns};
use crate::actors::Act;
use crate::call::{Answer, Reply, queue_code, refusal_code};
use crate::draws::Draws;
use crate::invariants::{self, At, Event, Invariant};
use crate::model::{Contradiction, Model, Seen, StepSeen};
use crate::plan::Plan;
use crate::tally::Tally;
use crate::witness::{End, Tried, Write};

/// After so many batches everything in the store is looked at.
pub(super) const LOOK_EVERY: u64 = 40;
/// Rows of one page.
const PAGE: usize = 500;

/// A rule and how it was broken.
type Verdict = Result<(), (String, Contradiction)>;

pub(super) struct Judges {
    pub(super) model: Model,
    invariants: Vec<Box<dyn Invariant>>,
    /// Every row as it must be by what was written.
    rows: BTreeMap<JobId, JobRow>,
    pub(super) steps: u64,
    /// What was done in the world outside since the last batch, and by whom.
    pub(super) acts: Vec<(String, Act)>,
}

impl Judges {
    pub(super) fn new(plan: &Plan, drawn: Draws) -> Self {
        let (model, invariants) = (Model::new(plan, drawn), invariants::all(plan));
        Self { model, invariants, rows: BTreeMap::new(), steps: 0, acts: Vec::new() }
    }

    /// A server process begins.
    pub(super) fn started(&mut self, node: usize, at: At) -> Verdict {
        self.model.node_started(node, at.now, at.mono);
        self.show(at, &Event::Started)
    }

    /// Judges one batch.
    pub(super) fn judge(&mut self, step: &StepSeen, tally: &mut Tally) -> Verdict {
        let at = At { now: step.wall, mono: step.mono };
        for (who, act) in std::mem::take(&mut self.acts) {
            self.show(at, &Event::Acted { job: act.job, name: &act.name, who: &who })?;
        }
        show(&mut self.invariants, at, &Event::Granted { rows: &self.rows })?;
        for tried in &step.tries {
            if matches!(tried.end, End::Committed | End::Unknown { committed: true }) {
                self.committed(at, tried)?;
                turns::count(tried, tally);
                tally.count("batches", "committed");
            } else {
                tally.count("batches", "failed");
            }
        }
        let committed = step.tries.iter().any(|tried| tried.end == End::Committed);
        let items = step.items.iter().filter_map(|item| match item {
            Seen::Call { call, reply: Some(reply) } => Some((call, reply)),
            _ => None,
        });
        let parked = step.parked.iter().filter_map(|parked| Some((&parked.call, parked.reply.as_ref()?)));
        for (call, reply) in items.chain(parked).filter(|_| !step.died) {
            count(reply, tally);
            self.show(at, &Event::Answered { call, reply, committed })?;
        }
        for item in &step.items {
            match item {
                Seen::Call { call, .. } => self.show(at, &Event::Sent(call))?,
                Seen::GiveBack(leases) => tally.add("network", "leases given back", leases.len() as u64),
                Seen::Stop => {}
            }
        }
        self.show(at, &Event::StepOver)?;
        self.model.step(step).map_err(|found| ("model".to_owned(), found))
    }

    fn committed(&mut self, at: At, tried: &Tried) -> Verdict {
        self.show(at, &Event::Began)?;
        for lease in self.rows.values_mut().filter_map(|row| row.job.lease.as_mut()) {
            lease.expires_at = lease.expires_at.plus_ms(tried.shift_ms);
            lease.time_limit_at = lease.time_limit_at.map(|limit| limit.plus_ms(tried.shift_ms));
        }
        for write in &tried.writes {
            self.show(at, &Event::Wrote(write))?;
            match write {
                Write::Insert(insert) => {
                    self.rows.insert(insert.row.job.id, insert.row.clone());
                }
                Write::Change(change) => {
                    self.rows.insert(change.after.job.id, change.after.clone());
                }
                Write::Erase(id) => {
                    self.rows.remove(id);
                }
                Write::Key(_) | Write::Attempt(..) | Write::Limit(..) | Write::Queue(_) => {}
            }
        }
        let event = Event::Committed { rows: &self.rows };
        show(&mut self.invariants, at, &event)
    }

    fn show(&mut self, at: At, event: &Event<'_>) -> Verdict {
        show(&mut self.invariants, at, event)
    }

    /// Looks at everything that the store holds.
    fn scanned(&mut self, at: At, jobs: &[FullJob]) -> Verdict {
        let event = Event::Scanned { jobs, rows: &self.rows };
        show(&mut self.invariants, at, &event)
    }
}

fn show(invariants: &mut [Box<dyn Invariant>], at: At, event: &Event<'_>) -> Verdict {
    for invariant in invariants {
        invariant.see(at, event).map_err(|(job, what)| {
            (invariant.name().to_owned(), Contradiction::of(job.map(|id| id.0), what))
        })?;
    }
    Ok(())
}

/// What an answer was, for the table.
fn count(reply: &Reply, tally: &mut Tally) {
    let refused = |code: &'static str, tally: &mut Tally| tally.count("refusals", code);
    match reply {
        Err(error) => tally.count("failed calls", failure_name(error)),
        Ok(Answer::Enqueue(items)) => {
            for item in items {
                match item {
                    Ok(_) => tally.count("answers", "enqueued"),
                    Err(refusal) => refused(refusal_code(refusal), tally),
                }
            }
        }
        Ok(Answer::Claim(answer)) => count_claim(answer, tally),
        Ok(Answer::Work(work)) => {
            for result in &work.results {
                match result {
                    Ok(answer) if answer.replayed => tally.count("answers", "report repeated"),
                    Ok(_) => tally.count("answers", "call accepted"),
                    Err(refusal) => refused(refusal_code(refusal), tally),
                }
            }
            work.claimed.iter().for_each(|answer| count_claim(answer, tally));
        }
        Ok(Answer::Operate(Ok(_))) => tally.count("answers", "operator's action done"),
        Ok(Answer::Operate(Err(refusal)) | Answer::Limit(Err(refusal))) => {
            refused(refusal_code(refusal), tally);
        }
        Ok(Answer::PutType(_)) => tally.count("answers", "settings written"),
        Ok(Answer::Limit(Ok(_))) => tally.count("answers", "about limits"),
        Ok(Answer::Queue(Ok(_))) => tally.count("answers", "about queues"),
        Ok(Answer::Queue(Err(refusal))) => refused(queue_code(refusal), tally),
    }
}

fn count_claim(answer: &tagwerk_engine::command::ClaimAnswer, tally: &mut Tally) {
    let name = match (answer.jobs.is_empty(), answer.replayed) {
        (true, _) => "claim empty",
        (false, true) => "claim repeated",
        (false, false) => "claim served",
    };
    tally.count("answers", name);
    tally.add("answers", "jobs handed out", answer.jobs.len() as u64);
}

const fn failure_name(error: &tagwerk_engine::command::EngineError) -> &'static str {
    use tagwerk_engine::command::EngineError;
    match error {
        EngineError::Draining => "draining",
        EngineError::Overloaded => "overloaded",
        EngineError::StoreBusy => "store-busy",
        EngineError::StoreFull => "store-full",
        EngineError::StoreReadOnly => "store-read-only",
        EngineError::StoreDamaged => "store-damaged",
        EngineError::StoreGone => "store-gone",
        EngineError::JobDamaged => "job-damaged",
        EngineError::OutcomeUnknown => "outcome-unknown",
        EngineError::Internal => "internal",
    }
}

impl World {
    /// Reads everything there is through a snapshot and lets all judges look at it.
    pub(super) fn look_at_all(&mut self, index: usize) -> Lived<()> {
        let at = At { now: self.wall(), mono: self.mono() };
        if self.servers[index].node.is_none() {
            return Ok(());
        }
        let limits = self.limits_told(index)?;
        let Some(node) = &self.servers[index].node else { return Ok(()) };
        let (readers, vitals) = (std::sync::Arc::clone(&node.readers), node.shared.vitals());
        let broken = |what: String| Stop::world(format!("the store cannot be read: {what}"));
        let mut read = readers.snapshot().map_err(|error| broken(error.to_string()))?;
        let jobs = everything(&mut *read).map_err(broken)?;
        let stop = |(rule, found)| Stop { rule, found };
        self.judges.scanned(at, &jobs).map_err(stop)?;
        let ledger = read.ledger().map_err(|error| broken(error.to_string()))?;
        self.judges.model.compare_all(&jobs, &ledger).map_err(|found| stop(("model".to_owned(), found)))?;
        let rows = read.queue_rows().map_err(|error| broken(error.to_string()))?;
        self.judges.model.compare_queues(&rows).map_err(|found| stop(("model".to_owned(), found)))?;
        let checked = check(&mut *read, Depth::Integrity).map_err(|error| broken(error.to_string()))?;
        if let Some(finding) = checked.findings.first() {
            let what = format!("`tagwerk check` finds {}: {}", finding.code, finding.detail);
            return Err(stop(("check".to_owned(), Contradiction::of(None, what))));
        }
        let now = Timestamp::from_millis(at.now);
        let waits = |full: &&FullJob| full.row.is_blocked();
        for full in jobs.iter().take(60).chain(jobs.iter().skip(60).filter(waits).take(60)) {
            let mut told =
                explain(&mut *read, &full.row, &vitals, now).map_err(|error| broken(error.to_string()))?;
            told.add_limits(&full.row.lane, &limits);
            self.judges.model.explained(full.row.job.id.0, &told, at.now).map_err(|what| {
                stop(("explained".to_owned(), Contradiction::of(Some(full.row.job.id.0), what)))
            })?;
            let place = place(&mut *read, &full.row).map_err(|error| broken(error.to_string()))?;
            self.judges.model.placed(full.row.job.id.0, place).map_err(|what| {
                stop(("explained".to_owned(), Contradiction::of(Some(full.row.job.id.0), what)))
            })?;
        }
        self.tally.count("batches", "everything looked at");
        Ok(())
    }
}

fn everything(read: &mut dyn Read) -> Result<Vec<FullJob>, String> {
    let mut jobs = Vec::new();
    loop {
        let after = jobs.last().map_or(JobId(0), |full: &FullJob| full.row.job.id);
        // A scan may leave out long texts, so it only says which jobs there are.
        let page = read.scan(after, PAGE).map_err(|error| error.to_string())?;
        let ids: Vec<JobId> = page.iter().map(id_of).collect();
        if ids.is_empty() {
            return Ok(jobs);
        }
        for (id, listed) in ids.iter().zip(read.jobs(&ids).map_err(|error| error.to_string())?) {
            match listed {
                Some(Listed::Job(full)) => jobs.push(*full),
                Some(Listed::Damaged { why, .. }) => return Err(format!("job {id} is damaged: {why}")),
                None => return Err(format!("job {id} is in a scan, but cannot be found by its id")),
            }
        }
    }
}

fn id_of(listed: &Listed) -> JobId {
    match listed {
        Listed::Job(full) => full.row.job.id,
        Listed::Damaged { id, .. } => *id,
    }
}
