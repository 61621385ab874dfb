//! What an operator's call leads to.

use tagwerk_core::{Action, AttemptEnd, Cause, Failure, FailureClass, Reason, Rejection, Status};
use tagwerk_engine::command::{KeyFate, Operate, OperateAnswer, Refusal};

use super::compare::{self, Payload};
use tagwerk_engine::store::Listed;

use super::enqueue::standing_of;
use super::eye::Eye;
use super::job::Job;
use super::keys::holds;
use super::{Contradiction, Judged, Model};

/// What an action does to a job.
enum Deed {
    /// Nothing is left to do.
    Nothing,
    Cancel,
    AskToStop,
    Retry(Option<u32>),
    ForceFail,
    Unblock,
}

impl Model {
    /// Applies an operator's call and judges its answer, if there is one.
    pub(crate) fn operate(
        &mut self,
        call: &Operate,
        answer: Option<&Result<OperateAnswer, Refusal>>,
        eye: &Eye<'_>,
    ) -> Judged {
        let id = call.id.0;
        if !self.jobs.contains_key(&id) {
            return compare::refused("not-found", Some(id), answer);
        }
        self.settle(id, eye);
        let job = self.job(id)?;
        let deed = match deed(job, call) {
            Ok(deed) => deed,
            Err(rejection) => {
                return match answer {
                    None => Ok(()),
                    Some(Err(Refusal::Rejected { rejection: got, job: full })) if *got == rejection => {
                        compare::shown(job, full, Payload::Shown)
                    }
                    Some(other) => Err(unexpected(id, &rejection.to_string(), other)),
                };
            }
        };
        if matches!(deed, Deed::Unblock) && !job.holds() {
            return compare::refused("not-holding", None, answer);
        }
        if let Some(assumed) = &call.assume
            && !self.may_assume(id, assumed)
        {
            return compare::refused("invalid", None, answer);
        }
        if matches!(deed, Deed::Retry(_))
            && let Err(owner) = self.take_back(id, eye)
        {
            return compare::refused("idempotency-key-held", Some(owner), answer);
        }
        let replayed = matches!(deed, Deed::Nothing) && call.action != Action::Delete;
        self.do_deed(id, &deed, call);
        if let (Some(assumed), Deed::Retry(_)) = (&call.assume, &deed) {
            self.assume(id, assumed);
        }
        if call.key == KeyFate::Free {
            self.free_key(id);
        }
        match answer {
            None => {}
            Some(Ok(OperateAnswer { job: Listed::Job(full), replayed: told })) if *told == replayed => {
                compare::shown(self.job(id)?, full, Payload::Shown)?;
            }
            Some(other) => return Err(unexpected(id, &format!("done, repeated: {replayed}"), other)),
        }
        if call.action == Action::Delete {
            self.deleted.insert(id);
            self.erase(id);
        }
        Ok(())
    }

    fn do_deed(&mut self, id: i64, deed: &Deed, call: &Operate) {
        let now = self.now;
        match deed {
            Deed::Nothing => return,
            Deed::Unblock => self.change(id, |job| {
                job.acted = true;
                job.turn.let_go = true;
            }),
            Deed::Cancel => self.change(id, |job| {
                job.end_attempt(AttemptEnd::Cancelled, now);
                job.acted = true;
                job.rest(Status::Cancelled, None, now);
            }),
            Deed::AskToStop => self.change(id, |job| {
                job.stopping = true;
                job.acted = true;
            }),
            Deed::Retry(max_retries) => {
                let was_superseded = self.jobs.get(&id).is_some_and(|job| job.superseded_by.is_some());
                self.change(id, |job| {
                    job.retry_count = 0;
                    job.lease_losses = 0;
                    job.max_retries = max_retries.unwrap_or(job.max_retries);
                    job.expires_at = job.max_age_ms.map(|ms| now + ms);
                    job.acted = true;
                    job.superseded_by = None;
                    job.wait(now);
                });
                if was_superseded {
                    self.reopen(id);
                }
                self.ledger.retried(self.jobs.get(&id));
            }
            Deed::ForceFail => self.change(id, |job| force_fail(job, call, now)),
        }
        if let Some(payload) = &call.payload {
            self.note(id, |job| job.payload.clone_from(payload));
        }
    }

    /// A retry takes the job's key back, unless somebody else holds it.
    fn take_back(&mut self, id: i64, eye: &Eye<'_>) -> Result<(), i64> {
        let Some(job) = self.jobs.get(&id) else { return Ok(()) };
        let (sent, kind) = (job.sent.clone(), job.kind.clone());
        let Some(key) = sent.key.clone() else { return Ok(()) };
        match self.keys.get(&key) {
            Some(row) if row.owner == id => return Ok(()),
            _ => {}
        }
        if let Some(held) = self.held(&key, eye) {
            return Err(held.owner);
        }
        let of_type = self.types.get(&kind).cloned().unwrap_or_default();
        let row = self.key_row(&sent, &of_type, id);
        self.keys.insert(key, row);
        Ok(())
    }

    fn free_key(&mut self, id: i64) {
        let Some(key) = self.jobs.get(&id).and_then(|job| job.sent.key.clone()) else { return };
        if self.keys.get(&key).is_some_and(|row| row.owner == id) {
            self.keys.remove(&key);
        }
    }

    /// The job is gone; its key lives on while it holds.
    pub(crate) fn erase(&mut self, id: i64) {
        let Some(job) = self.jobs.remove(&id) else { return };
        self.touched.remove(&id);
        self.close(id);
        self.leave_order(&job);
        self.ledger.pruned(&job);
        let Some(key) = &job.sent.key else { return };
        let Some(row) = self.keys.get_mut(key).filter(|row| row.owner == id) else { return };
        let standing = standing_of(&job);
        if holds(row, &standing, self.now) {
            row.tombstone = Some(standing);
        } else {
            self.keys.remove(key);
        }
    }
}

/// Judges an action. The version that was seen counts only where something would change.
fn deed(job: &Job, call: &Operate) -> Result<Deed, Rejection> {
    let deed = match (&call.action, job.status) {
        (Action::Cancel { wait: true }, Status::Running) if job.stopping => Deed::Nothing,
        (Action::Cancel { wait: true }, Status::Running) => Deed::AskToStop,
        (Action::Cancel { .. }, Status::Completed) => return Err(Rejection::AlreadyCompleted),
        (Action::Cancel { .. }, Status::Failed) => return Err(Rejection::UseDiscard),
        (Action::Retry { .. }, Status::Failed) if job.superseded_by.is_some() => {
            let by = tagwerk_core::JobId(job.superseded_by.unwrap_or_default());
            return Err(Rejection::Superseded { by, may_force: true });
        }
        (Action::Unblock, Status::Failed) => Deed::Unblock,
        (Action::Retry { max_retries } | Action::ForceRetry { max_retries }, Status::Failed) => {
            Deed::Retry(*max_retries)
        }
        (Action::Retry { .. } | Action::ForceRetry { .. } | Action::Unblock, status)
        | (Action::Discard, status @ Status::Completed) => {
            return Err(Rejection::NotFailed { status });
        }
        (Action::Discard, status @ (Status::Pending | Status::Running)) => {
            return Err(Rejection::UseCancel { status });
        }
        (Action::ForceFail { .. }, Status::Running) => Deed::ForceFail,
        (Action::ForceFail { .. }, status @ (Status::Pending | Status::Completed)) => {
            return Err(Rejection::NotRunning { status });
        }
        (Action::ForceFail { .. }, Status::Cancelled) => return Err(Rejection::Cancelled),
        (Action::Cancel { .. }, Status::Pending | Status::Running)
        | (Action::Discard, Status::Failed)
        | (Action::Delete, Status::Pending | Status::Running | Status::Failed) => Deed::Cancel,
        (Action::Cancel { .. } | Action::Discard | Action::Delete, Status::Cancelled)
        | (Action::ForceFail { .. }, Status::Failed)
        | (Action::Delete, Status::Completed)
        | (Action::Replace { .. }, _) => Deed::Nothing,
    };
    let changes = !matches!(deed, Deed::Nothing) || call.action == Action::Delete;
    match call.seen_version {
        Some(seen) if changes && seen != job.version => {
            Err(Rejection::VersionChanged { seen, current: job.version })
        }
        _ => Ok(deed),
    }
}

/// What the attempt did is not known, so the next one must verify.
fn force_fail(job: &mut Job, call: &Operate, now: i64) {
    let Action::ForceFail { error } = &call.action else { return };
    job.end_attempt(AttemptEnd::Forced, now);
    if let Some(past) = job.history.last_mut() {
        past.error = Some(error.clone());
    }
    job.acted = true;
    job.verify = true;
    job.error = Some(error.clone());
    let failure = Failure { class: FailureClass::Unknown, reason: Reason::Forced, cause: Cause::Operator };
    job.rest(Status::Failed, Some(failure), now);
}

fn unexpected(id: i64, want: &str, got: &Result<OperateAnswer, Refusal>) -> Contradiction {
    let got = match got {
        Ok(answer) => format!("done, repeated: {}", answer.replayed),
        Err(refusal) => format!("refused: {refusal}"),
    };
    Contradiction::of(Some(id), format!("the operator must be told: {want}; the answer is: {got}"))
}
