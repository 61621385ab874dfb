//! Why a job is where it is: every reason for waiting, what would free it, and until when if time alone decides.

use tagwerk_core::{AttemptEnd, JobId, Status, Timestamp, limits, overdue};

use crate::engine::Vitals;
use crate::query::turns;
use crate::row::{JobRow, QueueRow};
use crate::store::{Read, StoreResult};

/// Running rows that are read at a time.
const RUNNING_PAGE: usize = 1_000;

/// Kind of a reason. A closed list: programs may match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyKind {
    /// It could be handed out at this moment.
    Ready,
    /// Its first start lies in the future.
    Scheduled,
    /// It waits for its back-off after an attempt that failed or was lost.
    Backoff,
    /// A worker gave it back with a delay.
    Released,
    /// A worker holds it.
    Running,
    /// The attempt is over; the row will be rewritten within a second.
    AttemptOver,
    /// It will be cancelled at the holder's next call or at the end of its lease.
    CancelRequested,
    /// Its maximum age is reached; it goes to review within a second.
    Expired,
    /// A limit of it is full.
    LimitFull,
    /// The rate of a limit of it is used up for now.
    RateExhausted,
    /// A limit of it was closed for a while.
    Throttled,
    /// No worker that would take it has asked lately.
    NoWorker,
    /// An operator has paused its queue.
    QueuePaused,
    /// As many jobs run in its queue as may.
    QueueFull,
    /// The server is shutting down and hands out nothing.
    Draining,
    /// Another job with its ordering key comes first.
    BlockedByKey,
    /// It failed and waits for a person or an API call.
    InReview,
    /// It is done.
    Completed,
    /// It will not be run.
    Cancelled,
    /// A job with a newer version of the same subject has made it out of date.
    Superseded,
}

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// What kind of reason.
    pub kind: WhyKind,
    /// A sentence for people.
    pub detail: String,
    /// Since when it holds, if that is known.
    pub since: Option<Timestamp>,
    /// Until when, if time alone decides.
    pub until: Option<Timestamp>,
    /// What would free the job.
    pub freed_by: &'static str,
}

/// Answer of [`explain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Where the job stands.
    pub status: Status,
    /// All reasons, the one that decides first.
    pub reasons: Vec<Why>,
}

/// Explains a job as it is in this snapshot, judged at `now`.
pub fn explain(
    read: &mut dyn Read,
    row: &JobRow,
    vitals: &Vitals,
    now: Timestamp,
) -> StoreResult<Explanation> {
    let mut reasons = match row.job.status {
        Status::Pending => pending(read, row, (vitals, now))?,
        Status::Running => vec![running(row, now)],
        Status::Failed => vec![failed(read, row)?],
        Status::Completed => {
            vec![settled(row, (WhyKind::Completed, "It was reported as done.", "nothing; it is done"))]
        }
        Status::Cancelled => vec![settled(
            row,
            (
                WhyKind::Cancelled,
                "It was cancelled and will not be run.",
                "nothing; enqueue it anew if it is needed",
            ),
        )],
    };
    if let Some(why) = superseded(row) {
        // It decides only where it has ended the job.
        let at = if row.job.status == Status::Cancelled { 0 } else { reasons.len() };
        reasons.insert(at, why);
    }
    Ok(Explanation { status: row.job.status, reasons })
}

fn pending(read: &mut dyn Read, row: &JobRow, at: (&Vitals, Timestamp)) -> StoreResult<Vec<Why>> {
    let (vitals, now) = at;
    let job = &row.job;
    if overdue(job, now).is_some() {
        return Ok(vec![Why {
            kind: WhyKind::Expired,
            detail: "Its maximum age is reached; it is never handed out and goes to review within a second."
                .into(),
            since: job.expires_at,
            until: None,
            freed_by: "a retry from review",
        }]);
    }
    let mut reasons = Vec::new();
    let said = read.queue_rows()?.into_iter().find(|queue| *queue.name == *row.lane.queue);
    reasons.extend(said.iter().flat_map(paused));
    if let Some(queue) = &said {
        reasons.extend(full(read, row, queue)?);
    }
    if job.available_at > now {
        reasons.push(not_due(read, row)?);
    }
    reasons.extend(blocked(read, row)?);
    if vitals.draining {
        reasons.push(Why {
            kind: WhyKind::Draining,
            detail: "The server is shutting down and hands out nothing.".into(),
            since: None,
            until: None,
            freed_by: "the restart of the server",
        });
    }
    reasons.extend(no_worker(read, row, at)?);
    if reasons.is_empty() {
        reasons.push(ready(read, row, now)?);
    }
    Ok(reasons)
}

/// All reasons for which a queue is paused.
fn paused(queue: &QueueRow) -> impl Iterator<Item = Why> + use<'_> {
    queue.paused.iter().map(|pause| {
        let by = pause.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        Why {
            kind: WhyKind::QueuePaused,
            detail: format!("Queue {} was paused{by}: {}.", queue.name, pause.reason.trim_end_matches('.')),
            since: Some(pause.at),
            until: None,
            freed_by: "resume of the queue, for each reason",
        }
    })
}

/// Whether as many jobs run in its queue as may, of all priorities or of those that may not use the reserve.
fn full(read: &mut dyn Read, row: &JobRow, queue: &QueueRow) -> StoreResult<Option<Why>> {
    let settings = &queue.settings;
    let Some(max) = settings.max_running else { return Ok(None) };
    let below = settings.reserve.map(|reserve| reserve.from_priority);
    let (mut running, mut running_below, mut after) = (0, 0, JobId(0));
    loop {
        let page = read.running(after, RUNNING_PAGE)?;
        for other in page.iter().filter(|other| other.lane.queue == row.lane.queue) {
            running += 1;
            running_below += u32::from(below.is_some_and(|from| other.priority < from));
        }
        match page.last() {
            Some(last) if page.len() == RUNNING_PAGE => after = last.job.id,
            _ => break,
        }
    }
    if settings.room(running, running_below, row.priority) != Some(0) {
        return Ok(None);
    }
    let kept = settings.reserve.filter(|reserve| running < max && row.priority < reserve.from_priority);
    let detail = match kept {
        Some(reserve) => format!(
            "Queue {} runs {running} of {max} jobs; slots kept for priority {} and above: {}.",
            queue.name,
            reserve.from_priority.value(),
            reserve.slots
        ),
        None => format!("Queue {} is full: {running} of {max} jobs run.", queue.name),
    };
    let freed_by = "the end of a job that runs in the queue, or a higher max_running";
    Ok(Some(Why { kind: WhyKind::QueueFull, detail, since: None, until: None, freed_by }))
}

fn ready(read: &mut dyn Read, row: &JobRow, now: Timestamp) -> StoreResult<Why> {
    let cap = limits::POSITION_EXACT_MAX as usize;
    let ahead = read.ahead(row, now, cap + 1)?;
    let place = if ahead > cap { format!("behind more than {cap}") } else { format!("behind {ahead}") };
    Ok(Why {
        kind: WhyKind::Ready,
        detail: format!("It can be handed out; in its queue it stands {place} ready jobs."),
        since: Some(row.job.available_at),
        until: None,
        freed_by: "the next claim that reaches it",
    })
}

fn not_due(read: &mut dyn Read, row: &JobRow) -> StoreResult<Why> {
    let job = &row.job;
    let newest = read.attempts(job.id, job.leases.saturating_sub(1), 1)?.pop();
    let (kind, detail) = match newest.map(|row| row.attempt.end) {
        None => (WhyKind::Scheduled, "Its start lies in the future.".to_owned()),
        Some(AttemptEnd::Released) => {
            (WhyKind::Released, "A worker gave it back and asked to wait.".to_owned())
        }
        Some(_) => {
            let left = job.attempts_left();
            (WhyKind::Backoff, format!("It waits before its next attempt; {left} left."))
        }
    };
    Ok(Why { kind, detail, since: Some(job.updated_at), until: Some(job.available_at), freed_by: "time" })
}

/// A reason only if no worker whose claims would take the job has asked within the longest wait of a claim and a half.
fn no_worker(read: &mut dyn Read, row: &JobRow, at: (&Vitals, Timestamp)) -> StoreResult<Option<Why>> {
    let (vitals, now) = at;
    let wants = |names: &Option<Vec<String>>, name: &str| {
        names.as_ref().is_none_or(|names| names.iter().any(|candidate| candidate == name))
    };
    let takers = vitals.registry.workers();
    let asked = takers
        .iter()
        .filter(|(_, seen)| wants(&seen.queues, &row.lane.queue) && wants(&seen.types, &row.lane.kind))
        .filter_map(|(_, seen)| seen.last_claim_at)
        .max();
    let stored = read.queues()?;
    let last = stored
        .into_iter()
        .filter(|(queue, _)| *queue == *row.lane.queue || queue == crate::registry::ALL_QUEUES)
        .filter_map(|(_, at)| at)
        .max()
        .filter(|_| takers.is_empty());
    let asked = asked.max(last);
    if asked.is_some_and(|at| now.since_ms(at) <= limits::NO_WORKER_AFTER_MS) {
        return Ok(None);
    }
    let (queue, kind) = (&row.lane.queue, &row.lane.kind);
    Ok(Some(Why {
        kind: WhyKind::NoWorker,
        detail: match asked {
            None => {
                format!("No worker has asked for type {kind} in queue {queue} since the server was started.")
            }
            Some(_) => format!("No worker has asked for type {kind} in queue {queue} lately."),
        },
        since: asked,
        until: None,
        freed_by: "a worker that claims from this queue",
    }))
}

fn running(row: &JobRow, now: Timestamp) -> Why {
    let job = &row.job;
    let (holder, since, until) = job.lease.as_ref().map_or(("nobody", None, None), |lease| {
        (lease.worker.as_str(), Some(lease.claimed_at), Some(lease.ends_at()))
    });
    if overdue(job, now).is_some() {
        return Why {
            kind: WhyKind::AttemptOver,
            detail: format!("The attempt of worker {holder} is over; the job moves on within a second."),
            since: until,
            until: None,
            freed_by: "time",
        };
    }
    if job.cancel_requested {
        return Why {
            kind: WhyKind::CancelRequested,
            detail: format!("Worker {holder} holds it; it is cancelled at the worker's next call."),
            since,
            until,
            freed_by: "the worker's next call, or time",
        };
    }
    Why {
        kind: WhyKind::Running,
        detail: format!("Worker {holder} holds it."),
        since,
        until,
        freed_by: "the worker's report, or the end of its lease",
    }
}

/// The job before it in the order of its key.
fn blocked(read: &mut dyn Read, row: &JobRow) -> StoreResult<Option<Why>> {
    let Some(order) = row.order.as_ref().filter(|order| order.blocked) else { return Ok(None) };
    let Some(before) = turns::holder(read.order(&order.key)?, row.job.id) else { return Ok(None) };
    let job = &before.job;
    let (stands, freed_by) = match job.status {
        Status::Running => ("runs", "the end of that job"),
        Status::Failed => ("is in review", "retry, discard or unblock of that job"),
        Status::Pending | Status::Completed | Status::Cancelled => ("waits", "the end of that job"),
    };
    Ok(Some(Why {
        kind: WhyKind::BlockedByKey,
        detail: format!("Job {} with the same ordering key comes first; it {stands}.", job.id),
        since: Some(job.updated_at),
        until: None,
        freed_by,
    }))
}

fn failed(read: &mut dyn Read, row: &JobRow) -> StoreResult<Why> {
    let failure = row.job.failure.map_or_else(String::new, |failure| {
        format!(" ({}, {}, {})", failure.reason.name(), failure.class.name(), failure.cause.name())
    });
    let blocks = match turns::place(read, row)?.blocks {
        None | Some(0) => String::new(),
        Some(n) => format!(" It blocks {} of its ordering key.", counted(n)),
    };
    let doubts = in_doubt(row);
    Ok(Why {
        kind: WhyKind::InReview,
        detail: format!("It is in review{failure} until somebody decides.{doubts}{blocks}"),
        since: row.job.finished_at,
        until: None,
        freed_by: if blocks.is_empty() {
            "retry or discard"
        } else {
            "retry or discard; unblock frees the others"
        },
    })
}

/// What has to be looked up before anybody decides.
fn in_doubt(row: &JobRow) -> String {
    let names: Vec<&str> = row.job.effects_in_doubt().map(|effect| &*effect.name).collect();
    if names.is_empty() {
        return String::new();
    }
    let names = names.join(", ");
    format!(" Nobody knows whether {names} happened: look it up, and say so with a retry (assume).")
}

fn counted(n: usize) -> String {
    match n {
        1 => "1 job".to_owned(),
        n if n > limits::POSITION_EXACT_MAX as usize => {
            format!("more than {} jobs", limits::POSITION_EXACT_MAX)
        }
        n => format!("{n} jobs"),
    }
}

fn settled(row: &JobRow, of: (WhyKind, &str, &'static str)) -> Why {
    Why { kind: of.0, detail: of.1.to_owned(), since: row.job.finished_at, until: None, freed_by: of.2 }
}

/// What a newer version means for the job; nothing if it was done all the same.
fn superseded(row: &JobRow) -> Option<Why> {
    let by = row.job.superseded_by?;
    let newer = format!("Job {by} carries a newer version of the same subject");
    let (detail, freed_by) = match row.job.status {
        Status::Pending | Status::Completed => return None,
        Status::Running => {
            let detail =
                format!("{newer}; if this attempt does not complete it, it is cancelled, not run again.");
            (detail, "nothing; the newer one runs")
        }
        Status::Failed => (format!("{newer}, so a retry needs force."), "a retry with force, or discard"),
        Status::Cancelled => (format!("{newer}, so this one is not run."), "nothing; the newer one runs"),
    };
    Some(Why { kind: WhyKind::Superseded, detail, since: None, until: None, freed_by })
}
