//! Jobs of one ordering key run one after the other, in the order of their ids. Section 6.
//!
//! No two of them run at once. None starts while one with a lower id waits, or has failed and holds: it was to `block`, and
//! no call to unblock it has changed its row since it failed. Which job has which key is what the producers sent, not what
//! the rows say about places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagwerk_core::{Action, JobId, OnHeadFailure, Status};
use tagwerk_engine::row::JobRow;

use super::{At, Broken, Event, Invariant};
use crate::call::Call;
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct Ordered {
    keys: BTreeMap<Arc<str>, BTreeMap<JobId, Member>>,
    key_of: BTreeMap<JobId, Arc<str>>,
    /// Jobs in review whose rows this step has changed as a call to unblock them does.
    changed: BTreeSet<JobId>,
    /// Who started in this step behind a failed one.
    suspects: Vec<(JobId, JobId)>,
}

struct Member {
    status: Status,
    blocks: bool,
    /// A person has let the others go on.
    let_go: bool,
}

impl Invariant for Ordered {
    fn name(&self) -> &'static str {
        "one job of a key after the other"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Granted { .. } => {
                self.changed.clear();
                self.suspects.clear();
            }
            Event::Wrote(Write::Insert(insert)) => {
                let Some(ordering) = &insert.detail.ordering else { return Ok(()) };
                let id = insert.row.job.id;
                let blocks = ordering.on_head_failure != Some(OnHeadFailure::Skip);
                let member = Member { status: insert.row.job.status, blocks, let_go: false };
                self.key_of.insert(id, Arc::clone(&ordering.key));
                self.keys.entry(Arc::clone(&ordering.key)).or_default().insert(id, member);
            }
            Event::Wrote(Write::Change(change)) => return self.wrote(&change.before, &change.after),
            Event::Wrote(Write::Erase(id)) => {
                let members = self.key_of.remove(id).and_then(|key| self.keys.get_mut(&key));
                members.map(|members| members.remove(id));
            }
            Event::Sent(Call::Operate(call)) if call.action == Action::Unblock => {
                if self.changed.contains(&call.id)
                    && let Some(member) = self.member(call.id)
                {
                    member.let_go = member.status == Status::Failed;
                }
            }
            Event::StepOver => return self.convict(),
            _ => {}
        }
        Ok(())
    }
}

impl Ordered {
    fn member(&mut self, id: JobId) -> Option<&mut Member> {
        self.keys.get_mut(self.key_of.get(&id)?)?.get_mut(&id)
    }

    fn wrote(&mut self, before: &JobRow, after: &JobRow) -> Result<(), Broken> {
        let (id, status) = (after.job.id, after.job.status);
        let Some(member) = self.member(id) else { return Ok(()) };
        member.status = status;
        member.let_go &= status == Status::Failed;
        // One change for the failure, one for the call.
        let changes = 1 + i64::from(before.job.status != Status::Failed);
        if status == Status::Failed && after.job.version >= before.job.version + changes {
            self.changed.insert(id);
        }
        if status == Status::Running && after.job.leases > before.job.leases {
            return self.started(id);
        }
        Ok(())
    }

    fn started(&mut self, id: JobId) -> Result<(), Broken> {
        let Some(members) = self.key_of.get(&id).and_then(|key| self.keys.get(key)) else { return Ok(()) };
        for (other, member) in members.iter().filter(|(other, _)| **other != id) {
            match member.status {
                Status::Running => {
                    return Err((Some(id), format!("it was started while job {other} of its key ran")));
                }
                Status::Pending if *other < id => {
                    return Err((
                        Some(id),
                        format!("it was started before job {other} of its key, which waits"),
                    ));
                }
                Status::Failed if *other < id && member.blocks && !member.let_go => {
                    self.suspects.push((id, *other));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whom nobody has let go past.
    fn convict(&mut self) -> Result<(), Broken> {
        for (id, other) in std::mem::take(&mut self.suspects) {
            if self.member(other).is_some_and(|member| member.status == Status::Failed && !member.let_go) {
                return Err((
                    Some(id),
                    format!("it was started though job {other} of its key failed and holds"),
                ));
            }
        }
        Ok(())
    }
}
