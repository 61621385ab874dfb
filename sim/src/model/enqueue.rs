//! What an enqueue leads to.

use std::collections::BTreeMap;

use tagwerk_core::Status;
use tagwerk_core::idempotency::{OnDuplicate, OnMismatch};
use tagwerk_engine::command::{BulkMode, Enqueue, EnqueueJob, Enqueued, MaxAge, Refusal, Start};
use tagwerk_engine::message::EnqueueAnswer;
use tagwerk_engine::row::TypeSettings;

use super::compare::{self, Payload};
use super::eye::Eye;
use super::job::Job;
use super::keys::{Key, Print, Standing, holds, payload_of};
use super::queues::Admitted;
use super::turns::Turn;
use super::{Contradiction, Judged, Model};

/// Ten years of 365 days: the farthest a client may plan ahead.
const FARTHEST_MS: i64 = 10 * 365 * 24 * 3_600_000;

/// What the model expects of one item.
#[derive(Clone, Debug)]
pub(super) enum Want {
    Create,
    Existing { owner: i64, differs: bool },
    Pruned { owner: i64, differs: bool },
    Repeats { index: usize, differs: bool },
    Refused(&'static str, Option<i64>),
}

/// Where jobs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Producer,
    /// A job that was just completed: no bound of a queue refuses them, and a known key is no error.
    Completed,
}

impl Model {
    /// Applies an enqueue and judges its answer, if there is one.
    pub(crate) fn enqueue(
        &mut self,
        request: &Enqueue,
        answer: Option<&EnqueueAnswer>,
        eye: &Eye<'_>,
    ) -> Judged {
        let mut wants = self.wants((request, Source::Producer), answer, eye);
        let refused = wants.iter().position(|want| matches!(want, Want::Refused(..)));
        if let (BulkMode::Atomic, Some(index)) = (request.mode, refused) {
            for want in &mut wants {
                if !matches!(want, Want::Refused(..)) {
                    *want = Want::Refused("not-atomic", Some(i64::try_from(index).unwrap_or(0)));
                }
            }
        }
        let ids = self.create_all(request, &wants, eye)?;
        if answer.is_some_and(|items| items.len() != wants.len()) {
            return Err(Contradiction::of(None, "an enqueue was answered with another number of items"));
        }
        let whole = Payload::of(request.jobs.len());
        for (index, (job, want)) in request.jobs.iter().zip(&wants).enumerate() {
            let item = answer.and_then(|items| items.get(index));
            self.item((job, want), (&ids, index), (item, whole))?;
        }
        Ok(())
    }

    /// Creates what is to be created; the ids by item.
    pub(super) fn create_all(
        &mut self,
        request: &Enqueue,
        wants: &[Want],
        eye: &Eye<'_>,
    ) -> Result<Vec<Option<i64>>, Contradiction> {
        let mut ids: Vec<Option<i64>> = Vec::new();
        for (job, want) in request.jobs.iter().zip(wants) {
            let id = match want {
                Want::Create => Some(self.create(job, eye)?),
                _ => None,
            };
            ids.push(id);
        }
        self.judge_versions(request, &ids, eye);
        Ok(ids)
    }

    pub(super) fn wants(
        &mut self,
        (request, source): (&Enqueue, Source),
        answer: Option<&EnqueueAnswer>,
        eye: &Eye<'_>,
    ) -> Vec<Want> {
        let mut admitted = Admitted::new();
        let mut here: BTreeMap<&str, usize> = BTreeMap::new();
        let mut wants = Vec::new();
        for (index, job) in request.jobs.iter().enumerate() {
            let mut want = self.want((request, source, job), &here, eye);
            if matches!(want, Want::Create) {
                let item = answer.and_then(|items| items.get(index));
                let refused = match source {
                    Source::Producer => self.turned_away((request, job), &mut admitted, item),
                    Source::Completed => self.unknown_limit(job),
                };
                want = refused.map_or(want, |code| Want::Refused(code, None));
            }
            if let (Want::Create, Some(key)) = (&want, &job.key) {
                here.insert(key, index);
            }
            wants.push(want);
        }
        wants
    }

    fn want(
        &mut self,
        (request, source, job): (&Enqueue, Source, &EnqueueJob),
        here: &BTreeMap<&str, usize>,
        eye: &Eye<'_>,
    ) -> Want {
        let far = |at: i64| at - self.now > FARTHEST_MS;
        if matches!(job.start, Start::At(at) if far(at.as_millis()))
            || matches!(job.max_age, Some(MaxAge::At(at)) if far(at.as_millis()) || at.as_millis() <= self.now)
        {
            return Want::Refused("invalid", None);
        }
        if job.supersede && job.subject.as_ref().is_none_or(|subject| subject.version.is_none()) {
            return Want::Refused("invalid", None);
        }
        let Some(key) = &job.key else { return Want::Create };
        let is_strict = source == Source::Producer;
        let reject = is_strict && job.on_mismatch == Some(OnMismatch::Reject);
        let conflict = is_strict && job.on_duplicate == Some(OnDuplicate::Conflict);
        if let Some(&index) = here.get(key.as_str()) {
            let differs = Print::of(&request.jobs[index]) != Print::of(job);
            let first = i64::try_from(index).ok();
            return match (differs && reject, conflict) {
                (true, _) => Want::Refused("idempotency-key-reused (same request)", first),
                (false, true) => Want::Refused("duplicate (same request)", first),
                (false, false) => Want::Repeats { index, differs },
            };
        }
        let Some(held) = self.held(key, eye) else { return Want::Create };
        let (owner, differs, pruned) = (held.owner, held.first != Print::of(job), held.tombstone.is_some());
        match (differs && reject, conflict, pruned) {
            (true, _, false) => Want::Refused("idempotency-key-reused", Some(owner)),
            (true, _, true) => Want::Refused("idempotency-key-reused (pruned)", Some(owner)),
            (false, true, false) => Want::Refused("duplicate", Some(owner)),
            (false, true, true) => Want::Refused("duplicate (pruned)", Some(owner)),
            (false, false, false) => Want::Existing { owner, differs },
            (false, false, true) => Want::Pruned { owner, differs },
        }
    }

    /// The key's row, if somebody holds it now.
    pub(crate) fn held(&mut self, key: &str, eye: &Eye<'_>) -> Option<Key> {
        let row = self.keys.get(key)?.clone();
        if row.tombstone.is_none() {
            self.settle(row.owner, eye);
        }
        let standing = self.standing(&row)?;
        holds(&row, &standing, self.now).then_some(row)
    }

    fn standing(&self, key: &Key) -> Option<Standing> {
        key.tombstone.or_else(|| self.jobs.get(&key.owner).map(standing_of))
    }

    fn create(&mut self, sent: &EnqueueJob, eye: &Eye<'_>) -> Result<i64, Contradiction> {
        let Some(insert) = eye.inserts.get(self.created_here) else {
            return Err(Contradiction::of(None, "a job that must be created was not written"));
        };
        self.created_here += 1;
        let id = insert.row.job.id.0;
        if id <= self.last_id || id >= 1 << 53 {
            return Err(Contradiction::of(Some(id), "its id is not above all ids before it and below 2^53"));
        }
        self.last_id = id;
        if insert.detail.key != sent.key {
            return Err(Contradiction::of(Some(id), "its key was not stored as sent"));
        }
        if insert.detail.ordering != sent.ordering {
            return Err(Contradiction::of(Some(id), "its ordering key was not stored as sent"));
        }
        let of_type = self.types.get(&sent.kind).cloned().unwrap_or_default();
        let job = self.accepted(id, sent, &of_type);
        if let Some(key) = &sent.key {
            let row = self.key_row(sent, &of_type, id);
            self.keys.insert(key.clone(), row);
        }
        self.ledger.accepted(&job);
        self.line_up(&job);
        self.capacity.accepted(&job);
        self.make_limits(sent);
        self.touched.insert(id);
        self.jobs.insert(id, job);
        Ok(id)
    }

    pub(crate) fn key_row(&self, sent: &EnqueueJob, of_type: &TypeSettings, owner: i64) -> Key {
        Key {
            owner,
            scope: sent.scope.or(of_type.scope).unwrap_or_default(),
            ttl_ms: sent.ttl_ms.or(of_type.ttl_ms).unwrap_or(self.settings.ttl_ms),
            first: Print::of(sent),
            tombstone: None,
        }
    }

    fn accepted(&self, id: i64, sent: &EnqueueJob, of_type: &TypeSettings) -> Job {
        let now = self.now;
        let max_age = sent.max_age.or(of_type.max_age_ms.map(MaxAge::AfterMs));
        let (expires_at, max_age_ms) = match max_age {
            None => (None, None),
            Some(MaxAge::At(at)) => (Some(at.as_millis()), None),
            Some(MaxAge::AfterMs(ms)) => (Some(now + ms), Some(ms)),
        };
        Job {
            id,
            queue: self.queue_of(sent),
            kind: sent.kind.clone(),
            payload: payload_of(sent),
            priority: sent.priority.or(of_type.priority).unwrap_or_default().value(),
            status: Status::Pending,
            version: 1,
            attempt: 0,
            leases: 0,
            retry_count: 0,
            max_retries: sent.max_retries.or(of_type.max_retries).unwrap_or(self.settings.max_retries),
            lease_losses: 0,
            max_lease_losses: sent
                .max_lease_losses
                .or(of_type.max_lease_losses)
                .unwrap_or(self.settings.max_lease_losses),
            release_count: 0,
            available_at: due(sent.start, now),
            expires_at,
            max_age_ms,
            on_unknown: sent.on_unknown.or(of_type.on_unknown).unwrap_or_default(),
            verify: false,
            stopping: false,
            superseded_by: None,
            turn: Turn::default(),
            acted: false,
            failure: None,
            error: None,
            lease: None,
            created_at: now,
            updated_at: now,
            finished_at: None,
            result: None,
            checkpoint: None,
            progress: None,
            sent: sent.clone(),
            history: Vec::new(),
            knows_doubt: false,
            effects: Vec::new(),
        }
    }

    fn item(
        &mut self,
        (job, want): (&EnqueueJob, &Want),
        (ids, index): (&[Option<i64>], usize),
        (item, whole): (Option<&Result<Enqueued, Refusal>>, Payload),
    ) -> Judged {
        let replace = job.on_duplicate == Some(OnDuplicate::Replace);
        match want {
            Want::Create => {
                let id = ids[index].unwrap_or_default();
                match item {
                    None => Ok(()),
                    Some(Ok(Enqueued::Created(full))) => compare::shown(self.job(id)?, full, whole),
                    Some(other) => Err(unexpected(Some(id), "created", other)),
                }
            }
            // An earlier job of the same request is named by its id, if it was stored.
            Want::Refused(code, about) => {
                self.queue_refusal(job, item)?;
                let first = about.and_then(|first| ids.get(usize::try_from(first).ok()?).copied().flatten());
                match (code.strip_suffix(" (same request)"), first) {
                    (Some(code), Some(_)) => compare::refused(code, first, item),
                    _ => compare::refused(code, *about, item),
                }
            }
            Want::Pruned { owner, differs } => match item {
                None => Ok(()),
                Some(Ok(Enqueued::Pruned { id, payload_differs, replaced, .. }))
                    if id.0 == *owner
                        && payload_differs == differs
                        && *replaced == replace.then_some(false) =>
                {
                    Ok(())
                }
                Some(other) => Err(unexpected(Some(*owner), "the remains of the key's job", other)),
            },
            Want::Existing { owner, differs } => {
                let (differs, replaced) = self.meet(*owner, (job, *differs));
                self.existing(*owner, (differs, replaced), (item, whole))
            }
            Want::Repeats { index, differs } => {
                let owner = ids[*index].unwrap_or_default();
                let (differs, replaced) = self.meet(owner, (job, *differs));
                self.existing(owner, (differs, replaced), (item, whole))
            }
        }
    }

    fn existing(
        &self,
        owner: i64,
        (differs, replaced): (bool, Option<bool>),
        (item, whole): (Option<&Result<Enqueued, Refusal>>, Payload),
    ) -> Judged {
        match item {
            None => Ok(()),
            Some(Ok(Enqueued::Existing { job: full, payload_differs, replaced: done }))
                if full.row.job.id.0 == owner && *payload_differs == differs && *done == replaced =>
            {
                compare::shown(self.job(owner)?, full, whole)
            }
            Some(other) => {
                let what =
                    format!("the key's job {owner} (payload differs: {differs}, replaced: {replaced:?})");
                Err(unexpected(Some(owner), &what, other))
            }
        }
    }

    /// What a second call does to the job that has its key: whether it differs from it, and whether it replaced it.
    pub(super) fn meet(&mut self, owner: i64, (sent, differs): (&EnqueueJob, bool)) -> (bool, Option<bool>) {
        if sent.on_duplicate != Some(OnDuplicate::Replace) {
            return (differs, None);
        }
        let queue = self.queue_of(sent);
        let same_work = self.jobs.get(&owner).is_some_and(|job| job.kind == sent.kind && job.queue == queue);
        if same_work { (differs, Some(self.replace(owner, sent))) } else { (true, Some(false)) }
    }

    /// The queue that a job asks for, its type's, or the common one.
    pub(super) fn queue_of(&self, sent: &EnqueueJob) -> String {
        let of_type = self.types.get(&sent.kind).and_then(|of_type| of_type.queue.clone());
        sent.queue.clone().or(of_type).unwrap_or_else(|| "default".to_owned())
    }

    /// Rewrites payload, priority and time of a job that never started.
    fn replace(&mut self, owner: i64, sent: &EnqueueJob) -> bool {
        let now = self.now;
        let can = self.jobs.get(&owner).is_some_and(|job| job.status == Status::Pending && job.leases == 0);
        if !can {
            return false;
        }
        let of_type = self.types.get(&sent.kind).and_then(|of_type| of_type.priority);
        self.change(owner, |job| {
            job.acted = true;
            job.wait(due(sent.start, now));
            job.priority = sent.priority.or(of_type).unwrap_or_default().value();
            job.payload = payload_of(sent);
        });
        if let Some(row) = sent.key.as_ref().and_then(|key| self.keys.get_mut(key)) {
            row.first = Print::of(sent);
        }
        true
    }
}

pub(crate) const fn standing_of(job: &Job) -> Standing {
    Standing { status: job.status, started: job.leases > 0, finished_at: job.finished_at }
}

fn due(start: Start, now: i64) -> i64 {
    match start {
        Start::Now => now,
        Start::AfterMs(ms) => now + ms,
        Start::At(at) => at.as_millis().max(now),
    }
}

fn unexpected(job: Option<i64>, want: &str, got: &Result<Enqueued, Refusal>) -> Contradiction {
    let got = match got {
        Ok(Enqueued::Created(full)) => format!("created job {}", full.row.job.id),
        Ok(Enqueued::Existing { job, payload_differs, replaced }) => {
            format!(
                "existing job {} (payload differs: {payload_differs}, replaced: {replaced:?})",
                job.row.job.id
            )
        }
        Ok(Enqueued::Pruned { id, .. }) => format!("remains of job {id}"),
        Err(refusal) => format!("refused: {refusal}"),
    };
    Contradiction::of(job, format!("an enqueue must lead to {want}, the answer is: {got}"))
}
