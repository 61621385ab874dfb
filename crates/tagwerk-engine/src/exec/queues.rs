//! Controls of queues: saying something about one, and what that means for new jobs. What it means for claims is the
//! store's to keep, which hands out nothing of a paused queue; see `Tx::put_queue`.

use std::collections::{BTreeSet, HashMap};

use tagwerk_core::{Drain, Pause, PauseRefusal, Timestamp, queue};

use crate::command::{ControlQueue, EnqueueJob, QueueAnswer, QueueControl, QueueRefusal, Refusal};
use crate::exec::defaults::queue_of;
use crate::message::Message;
use crate::row::{QueueRow, TypeSettings};
use crate::store::{StoreResult, Tx};
use crate::work::{Env, Work};

/// What the controls of a batch led to.
#[derive(Default)]
pub(crate) struct Controlled {
    /// All rows, if some changed.
    pub(crate) queues: Option<HashMap<String, QueueRow>>,
    /// Answers in order.
    pub(crate) answers: Vec<QueueAnswer>,
    /// Queues that were paused before the batch and are no longer.
    pub(crate) resumed: BTreeSet<String>,
}

/// Writes what is said about queues first, so that all other commands of the batch see it.
pub(crate) fn control(tx: &mut dyn Tx, env: &Env<'_>, messages: &[&Message]) -> StoreResult<Controlled> {
    let mut controlled = Controlled::default();
    for message in messages {
        let Message::ControlQueue(ControlQueue { queue, control }, ..) = message else { continue };
        let known = controlled.queues.as_ref().unwrap_or(env.queues).get(queue).cloned();
        let before = known.unwrap_or_else(|| QueueRow::plain(queue));
        let answer = apply(before.clone(), control, env.now);
        if let Ok(after) = &answer
            && *after != before
        {
            tx.put_queue(after)?;
            let queues = controlled.queues.get_or_insert_with(|| env.queues.clone());
            queues.insert(queue.clone(), after.clone());
        }
        controlled.answers.push(answer);
    }
    let paused = |queues: &HashMap<String, QueueRow>, name: &str| {
        queues.get(name).is_some_and(|row| !row.paused.is_empty())
    };
    if let Some(queues) = &mut controlled.queues {
        let before = env.queues.keys().filter(|name| paused(env.queues, name));
        controlled.resumed = before.filter(|name| !paused(queues, name)).cloned().collect();
        queues.retain(|_, row| !row.is_plain());
    }
    Ok(controlled)
}

/// The row as it is to be.
fn apply(mut row: QueueRow, control: &QueueControl, at: Timestamp) -> QueueAnswer {
    match control {
        QueueControl::Set(settings) => row.settings = *settings,
        QueueControl::Pause { reason, by } => {
            let pause = Pause { reason: reason.clone(), by: by.clone(), at };
            queue::pause(&mut row.paused, pause).map_err(|refusal| refused(&row, refusal))?;
        }
        QueueControl::Resume { reason } => {
            queue::resume(&mut row.paused, reason.as_deref()).map_err(|refusal| refused(&row, refusal))?;
        }
        QueueControl::Drain { reason, by } => {
            row.draining.get_or_insert(Drain { reason: reason.clone(), by: by.clone(), at });
        }
        QueueControl::Open => row.draining = None,
    }
    Ok(row)
}

fn refused(row: &QueueRow, refusal: PauseRefusal) -> QueueRefusal {
    let queue = row.name.clone();
    let reasons = || row.paused.iter().map(|pause| pause.reason.clone()).collect();
    match refusal {
        PauseRefusal::Several => QueueRefusal::SeveralReasons { queue, reasons: reasons() },
        PauseRefusal::Other => QueueRefusal::OtherReasons { queue, reasons: reasons() },
        PauseRefusal::TooMany => QueueRefusal::TooManyReasons { queue },
    }
}

/// Jobs of one request that are to be created, by queue, where that is bounded.
#[derive(Default)]
pub(crate) struct Admitted(HashMap<String, u64>);

/// Whether the queue of a new job takes it; then it counts. Only producers are asked: what has been accepted may come back
/// from review, whatever the queue says by then.
pub(crate) fn admit(
    work: &mut Work<'_>,
    job: &EnqueueJob,
    admitted: &mut Admitted,
) -> StoreResult<Option<Refusal>> {
    let none = TypeSettings::default();
    let queue = queue_of(job, work.env.types.get(&job.kind).unwrap_or(&none));
    let Some(row) = work.env.queues.get(queue) else { return Ok(None) };
    if let Some(drain) = &row.draining {
        return Ok(Some(Refusal::QueueDraining { queue: queue.to_owned(), reason: drain.reason.clone() }));
    }
    let Some(max_depth) = row.settings.max_depth else { return Ok(None) };
    let here = admitted.0.entry(queue.to_owned()).or_default();
    if !row.settings.accepts(work.depth(queue)?.saturating_add(*here)) {
        return Ok(Some(Refusal::QueueFull { queue: queue.to_owned(), max_depth }));
    }
    *here += 1;
    Ok(None)
}
