//! How long a key holds.

use super::job::Life;
use crate::call::{Key, Scope, Status};
use crate::rules::{When, plus_ms};

/// Whether a key can hold, and whether it can be free: both while nobody knows whether its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holds {
    pub(crate) maybe: bool,
    pub(crate) maybe_not: bool,
}

/// Nobody knows.
pub(crate) const EITHER: Holds = Holds { maybe: true, maybe_not: true };
const YES: Holds = Holds { maybe: true, maybe_not: false };
const NO: Holds = Holds { maybe: false, maybe_not: true };

/// Whether a key still belongs to the job that has it.
pub(crate) fn holds(key: &Key, owner: &Life, at: When) -> Holds {
    let (status, started, finished) = match owner {
        Life::Unborn => return NO,
        Life::Here(job) => (job.status, job.started, job.finished),
        Life::Gone { status, started, finished, .. } => (*status, *started, Some(*finished)),
    };
    match (key.scope, status) {
        (Scope::Forever, _)
        | (Scope::Unfinished | Scope::Ttl, Status::Pending | Status::Running)
        | (Scope::Ttl, Status::Failed) => YES,
        (Scope::Waiting, Status::Pending) if !started => YES,
        (Scope::Waiting | Scope::Unfinished, _) => NO,
        (Scope::Ttl, Status::Cancelled) if !started => NO,
        (Scope::Ttl, Status::Completed | Status::Cancelled) => {
            let finished = finished.unwrap_or(When { lo: 0, hi: u64::MAX });
            Holds {
                maybe: at.lo < plus_ms(finished.hi, key.ttl_ms),
                maybe_not: at.hi >= plus_ms(finished.lo, key.ttl_ms),
            }
        }
    }
}
