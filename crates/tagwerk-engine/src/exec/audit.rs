//! What goes into the audit log: one place that looks at what a batch has done, so that no command can forget it.

use tagwerk_core::{Action, Timestamp};

use crate::batch::Output;
use crate::command::{
    AlertAnswer, AlertCall, ControlQueue, KeyFate, LimitAnswer, LimitCall, Operate, OperateAnswer, PutType,
    QueueControl,
};
use crate::message::Message;
use crate::row::AuditRow;
use crate::store::{StoreResult, Tx};

/// Writes an entry for each operator's action of the batch that was done. What was refused, or was done before, changed
/// nothing and has none.
pub(crate) fn write(
    tx: &mut dyn Tx,
    at: Timestamp,
    (messages, outputs): (&[&Message], &[Output]),
) -> StoreResult<()> {
    let rows: Vec<AuditRow> =
        messages.iter().zip(outputs).filter_map(|(message, output)| row(message, output, at)).collect();
    if rows.is_empty() { Ok(()) } else { tx.append_audit(&rows) }
}

fn row(message: &Message, output: &Output, at: Timestamp) -> Option<AuditRow> {
    let (by, (action, target, note)) = match (message, output) {
        (Message::Operate(call, by, _), Output::Operate(Ok(answer))) => (by, operated(call, answer)?),
        (Message::PutType(call, by, _), Output::PutType(answer)) => {
            (by, put_type(call, answer.as_ref().as_ref().ok().copied())?)
        }
        (Message::Limit(call, by, _), Output::Limit(answer)) => {
            (by, limited(call, answer.as_ref().as_ref().ok()?)?)
        }
        (Message::ControlQueue(call, by, _), Output::ControlQueue(Ok(_))) => (by, controlled(call)),
        (Message::Alert(AlertCall::Acknowledge { id, note }, by, _), Output::Alert(answer)) => {
            let AlertAnswer::Alert { changed: true, .. } = answer else { return None };
            (by, ("alert.ack", id.to_string(), note.clone()))
        }
        _ => return None,
    };
    Some(AuditRow { n: 0, at, who: by.name().to_owned(), action: action.to_owned(), target, note })
}

/// Action, target, note.
type Told = (&'static str, String, Option<String>);

fn operated(call: &Operate, answer: &OperateAnswer) -> Option<Told> {
    let action = match call.action {
        Action::Cancel { .. } => "job.cancel",
        Action::Retry { .. } | Action::ForceRetry { .. } => "job.retry",
        Action::Discard => "job.discard",
        Action::ForceFail { .. } => "job.force_fail",
        Action::Unblock => "job.unblock",
        Action::Delete => "job.delete",
        // Part of an enqueue, no operator's.
        Action::Replace { .. } => return None,
    };
    let changed = !answer.replayed || call.key == KeyFate::Free;
    changed.then(|| (action, call.id.to_string(), call.note()))
}

fn put_type(call: &PutType, had: Option<bool>) -> Option<Told> {
    let PutType { kind, settings } = call;
    // Deleting what is not there changes nothing.
    match (settings, had?) {
        (Some(_), _) => Some(("type.put", kind.clone(), None)),
        (None, true) => Some(("type.delete", kind.clone(), None)),
        (None, false) => None,
    }
}

fn limited(call: &LimitCall, answer: &LimitAnswer) -> Option<Told> {
    match (call, answer) {
        (LimitCall::Put(name, settings), _) => {
            let most = |n: Option<u32>| n.map_or_else(|| "none".to_owned(), |n| n.to_string());
            let rate = settings.rate.map(|rate| format!(", rate {} in {} ms", rate.count, rate.per_ms));
            let note = format!("max_running {}{}", most(settings.max_running), rate.unwrap_or_default());
            Some(("limit.put", name.clone(), Some(note)))
        }
        (LimitCall::Delete(name), LimitAnswer::Deleted) => Some(("limit.delete", name.clone(), None)),
        (LimitCall::Open(limit), _) => Some(("limit.open", limit.to_string(), None)),
        _ => None,
    }
}

fn controlled(call: &ControlQueue) -> Told {
    let (action, note) = match &call.control {
        QueueControl::Set(settings) => {
            let told = |n: Option<u64>| n.map_or_else(|| "none".to_owned(), |n| n.to_string());
            let note = format!(
                "max_running {}, max_depth {}",
                told(settings.max_running.map(u64::from)),
                told(settings.max_depth)
            );
            ("queue.put", Some(note))
        }
        QueueControl::Pause { reason, .. } => ("queue.pause", Some(reason.clone())),
        QueueControl::Resume { reason } => ("queue.resume", reason.clone()),
        QueueControl::Drain { reason, .. } => ("queue.drain", reason.clone()),
        QueueControl::Open => ("queue.open", None),
    };
    (action, call.queue.clone(), note)
}
