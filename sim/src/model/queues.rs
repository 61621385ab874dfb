//! What is said about queues, and which new jobs they take. Section 6.

use std::collections::BTreeMap;

use tagwerk_core::limits::PAUSE_REASONS_MAX;
use tagwerk_core::{Drain, Pause, Status, Timestamp};
use tagwerk_engine::command::{
    ControlQueue, Enqueue, EnqueueJob, Enqueued, QueueAnswer, QueueControl, QueueRefusal, Refusal,
};
use tagwerk_engine::row::QueueRow;
use tagwerk_engine::settings::UnknownLimits;

use super::{Contradiction, Judged, Model};

/// New jobs of one request, by queue.
pub(super) type Admitted = BTreeMap<String, u64>;

/// The answer to one job of a request.
pub(super) type Item = Result<Enqueued, Refusal>;

impl Model {
    /// Applies a control and judges its answer, if there is one.
    pub(super) fn control(&mut self, call: &ControlQueue, answer: Option<&QueueAnswer>) -> Judged {
        let known = self.capacity.queues.get(&call.queue).cloned();
        let row = known.unwrap_or_else(|| QueueRow::plain(&call.queue));
        let want = controlled(row, &call.control, Timestamp::from_millis(self.now));
        if let Ok(row) = &want {
            if row.is_plain() {
                self.capacity.queues.remove(&call.queue);
            } else {
                self.capacity.queues.insert(call.queue.clone(), row.clone());
            }
        }
        match answer {
            Some(got) if *got != want => {
                Err(Contradiction::of(None, format!("a queue must be as {want:?}, the answer is {got:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Why a new job is not taken, if it is not; then it counts.
    pub(super) fn turned_away(
        &self,
        (request, job): (&Enqueue, &EnqueueJob),
        admitted: &mut Admitted,
        item: Option<&Item>,
    ) -> Option<&'static str> {
        if let Some(code) = self.unknown_limit(job) {
            return Some(code);
        }
        let queue = self.queue_of(job);
        let row = self.capacity.queues.get(&queue)?;
        if row.draining.is_some() {
            return Some("queue-draining");
        }
        let max = row.settings.max_depth?;
        let here = admitted.entry(queue.clone()).or_default();
        let (low, high) = self.depth(&queue);
        let is_full = match (low + *here >= max, high + *here >= max) {
            (false, true) => self.was_full(request, item),
            (full, _) => full,
        };
        if is_full {
            return Some("queue-full");
        }
        *here += 1;
        None
    }

    /// Whether a job is refused because it names a limit that there is not.
    pub(super) fn unknown_limit(&self, job: &EnqueueJob) -> Option<&'static str> {
        let known = |name: &String| self.capacity.limits.contains_key(name);
        let mut named = job.special.iter().flat_map(|special| &special.limits);
        let is_unknown = named.any(|limit| !known(&limit.name));
        (is_unknown && self.settings.unknown_limits == UnknownLimits::Refuse)
            .then_some("invalid (unknown limit)")
    }

    /// Pending and running jobs of a queue. What is past its maximum age and has not been met may count or not.
    fn depth(&self, queue: &str) -> (u64, u64) {
        let of_queue = self.jobs.values().filter(|job| job.queue == queue);
        let (mut low, mut high) = (0, 0);
        for job in of_queue {
            let counts = matches!(job.status, Status::Pending | Status::Running);
            let is_fresh = self.fresh.contains(&job.id);
            low += u64::from(counts && !is_fresh && !job.is_overdue(self.now));
            high += u64::from(counts || is_fresh);
        }
        (low, high)
    }

    /// Where both may be: what the answer says, or whether fewer jobs were stored than sent.
    fn was_full(&self, request: &Enqueue, item: Option<&Item>) -> bool {
        match item {
            Some(item) => matches!(item, Err(Refusal::QueueFull { .. })),
            None => self.inserted_here < request.jobs.len(),
        }
    }

    /// What every refusal about a queue says of it.
    pub(super) fn queue_refusal(&self, job: &EnqueueJob, item: Option<&Item>) -> Judged {
        let name = self.queue_of(job);
        let row = self.capacity.queues.get(&name);
        let is_right = match item {
            Some(Err(Refusal::QueueFull { queue, max_depth })) => {
                *queue == name && row.and_then(|row| row.settings.max_depth) == Some(*max_depth)
            }
            Some(Err(Refusal::QueueDraining { queue, reason })) => {
                let said = row.and_then(|row| row.draining.as_ref()).map(|drain| &drain.reason);
                *queue == name && said == Some(reason)
            }
            _ => true,
        };
        if is_right {
            return Ok(());
        }
        Err(Contradiction::of(None, format!("a refusal must be about queue {name}, it is {item:?}")))
    }

    /// The rows of queues as the store has them.
    pub(crate) fn compare_queues(&self, rows: &[QueueRow]) -> Judged {
        let want: Vec<&QueueRow> = self.capacity.queues.values().collect();
        if rows.iter().eq(want.iter().copied()) {
            return Ok(());
        }
        Err(Contradiction::of(None, format!("of queues must be kept {want:?}, it is {rows:?}")))
    }
}

/// The row as it must be then.
fn controlled(mut row: QueueRow, control: &QueueControl, at: Timestamp) -> QueueAnswer {
    let queue = row.name.clone();
    let reasons = || row.paused.iter().map(|pause| pause.reason.clone()).collect::<Vec<String>>();
    match control {
        QueueControl::Set(settings) => row.settings = *settings,
        QueueControl::Pause { reason, by } => {
            let is_known = row.paused.iter().any(|pause| pause.reason == *reason);
            if !is_known && row.paused.len() == PAUSE_REASONS_MAX {
                return Err(QueueRefusal::TooManyReasons { queue });
            }
            if !is_known {
                row.paused.push(Pause { reason: reason.clone(), by: by.clone(), at });
            }
        }
        QueueControl::Resume { reason: None } if row.paused.len() > 1 => {
            return Err(QueueRefusal::SeveralReasons { queue, reasons: reasons() });
        }
        QueueControl::Resume { reason: None } => row.paused.clear(),
        QueueControl::Resume { reason: Some(reason) } => {
            let others = row.paused.iter().filter(|pause| pause.reason != *reason).count();
            if others > 0 && others == row.paused.len() {
                return Err(QueueRefusal::OtherReasons { queue, reasons: reasons() });
            }
            row.paused.retain(|pause| pause.reason != *reason);
        }
        QueueControl::Drain { .. } if row.draining.is_some() => {}
        QueueControl::Drain { reason, by } => {
            row.draining = Some(Drain { reason: reason.clone(), by: by.clone(), at });
        }
        QueueControl::Open => row.draining = None,
    }
    Ok(row)
}
