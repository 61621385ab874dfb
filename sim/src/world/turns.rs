//! Ordering keys at the end of a run, and what was met of them.

use tagwerk_core::{Action, JobId, Status};
use tagwerk_engine::command::{KeyFate, Operate};
use tagwerk_engine::row::JobRow;

use super::{Lived, Stop, World};
use crate::call::{Answer, Call};
use crate::tally::Tally;
use crate::witness::{Tried, Write};

impl World {
    /// Nothing goes on without a person: each job that holds back others is decided about. Whether somebody was.
    pub(super) fn decide(&mut self) -> Lived<bool> {
        let holders = self.judges.model.wait_for_people();
        if holders.is_empty() {
            return Ok(false);
        }
        for index in 0..self.servers.len() {
            self.look_at_all(index)?;
        }
        for id in &holders {
            self.tally.count("turns", "a person decides at the end");
            let action = match self.chance.below(4) {
                0 => Action::Retry { max_retries: None },
                1 => Action::Discard,
                _ => Action::Unblock,
            };
            if !self.order_is_given(*id, action)? && !self.order_is_given(*id, Action::Unblock)? {
                return Err(Stop::world(format!("job {id} holds back others and cannot be unblocked")));
            }
        }
        Ok(true)
    }

    /// Whether this was done. A retry may be refused: somebody has its idempotency key, or a newer version is there.
    fn order_is_given(&mut self, id: i64, action: Action) -> Lived<bool> {
        let call = Operate {
            id: JobId(id),
            action,
            seen_version: None,
            text: Some("the others must go on".to_owned()),
            payload: None,
            assume: None,
            key: KeyFate::ByScope,
        };
        Ok(matches!(self.ask(Call::Operate(call))?, Ok(Answer::Operate(Ok(_)))))
    }
}

/// Counts what a transaction did to turns.
pub(super) fn count(tried: &Tried, tally: &mut Tally) {
    for write in &tried.writes {
        let (before, after) = match write {
            Write::Insert(insert) => (None, &insert.row),
            Write::Change(change) => (Some(&change.before), &change.after),
            Write::Erase(_) | Write::Key(_) | Write::Attempt(..) | Write::Limit(..) | Write::Queue(_) => {
                continue;
            }
        };
        if let Some(what) = met(before, after) {
            tally.count("turns", what);
        }
    }
}

fn met(before: Option<&JobRow>, after: &JobRow) -> Option<&'static str> {
    let was_blocked = before.is_some_and(JobRow::is_blocked);
    let was = before.map(|row| row.job.status);
    match (was_blocked, after.is_blocked(), after.job.status) {
        (false, true, Status::Pending) if was == Some(Status::Pending) => Some("lost to one that came back"),
        (false, true, Status::Pending) if was.is_some() => Some("came back behind another one"),
        (false, true, _) => Some("waits behind another one"),
        (true, false, Status::Pending) => Some("came"),
        (true, _, Status::Failed) => Some("expired behind another one"),
        (true, _, Status::Cancelled) => Some("cancelled behind another one"),
        (false, _, Status::Failed) if was == Some(Status::Running) => {
            after.order.as_ref().map(|_| "a failed head holds")
        }
        _ => None,
    }
}
