//! What must hold whatever happens, each property by itself and without the model.
//!
//! An invariant sees every committed write, every answer, and from time to time everything that the store holds. It keeps
//! of that what it needs. [`all`] is the table; one file each. Two more stand elsewhere, since they need the engine's own
//! questions: that `tagwerk check` finds nothing (the ledger balances), and that `explain` names a reason that is true.

mod acknowledged;
mod claim_order;
mod depth;
mod due;
mod durable;
mod effects_once;
mod fenced;
mod ids_rise;
mod key_unique;
mod lease_end;
mod losses_bounded;
mod one_lease;
mod one_result;
mod ordered;
mod paused;
mod rates;
mod retention;
mod runs_bounded;
mod slots;
mod superseded;
mod turns;
mod verify;
mod version_rises;

use std::collections::BTreeMap;

use tagwerk_core::JobId;
use tagwerk_engine::row::{FullJob, JobRow};

use crate::call::{Call, Reply};
use crate::plan::Plan;
use crate::witness::Write;

/// When something was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// The wall clock.
    pub(crate) now: i64,
    /// The clock that never jumps.
    pub(crate) mono: i64,
}

/// Something that was seen. A step shows the rows before it, its transactions, what was sent and answered, its end.
pub(crate) enum Event<'a> {
    /// A server process begins.
    Started,
    /// A step begins with these rows.
    Granted { rows: &'a BTreeMap<JobId, JobRow> },
    /// A transaction that was committed begins.
    Began,
    /// It wrote this.
    Wrote(&'a Write),
    /// It has ended. All rows as they are now.
    Committed { rows: &'a BTreeMap<JobId, JobRow> },
    /// A call was in the step.
    Sent(&'a Call),
    /// A call was answered, in a step in which something was committed or not.
    Answered { call: &'a Call, reply: &'a Reply, committed: bool },
    /// Somebody has done something in the world outside, for a job.
    Acted { job: JobId, name: &'a str, who: &'a str },
    /// The step is over.
    StepOver,
    /// Everything that the store holds, and what it must hold by what was written.
    Scanned { jobs: &'a [FullJob], rows: &'a BTreeMap<JobId, JobRow> },
}

/// The job and what is wrong with it.
pub(crate) type Broken = (Option<JobId>, String);

/// See the module.
pub(crate) trait Invariant {
    /// The name by which a failure calls it.
    fn name(&self) -> &'static str;
    /// Looks at what happened.
    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken>;
}

/// The row that this write hands out, if it does.
fn started(write: &Write) -> Option<&JobRow> {
    let Write::Change(change) = write else { return None };
    let (before, after) = (&change.before.job, &change.after.job);
    let is_start = after.status == tagwerk_core::Status::Running && before.leases < after.leases;
    is_start.then_some(&change.after)
}

/// Every invariant.
pub(crate) fn all(plan: &Plan) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(acknowledged::Acknowledged::default()),
        Box::new(durable::Durable),
        Box::new(effects_once::EffectsOnce::default()),
        Box::new(one_lease::OneLease::default()),
        Box::new(one_result::OneResult::default()),
        Box::new(ordered::Ordered::default()),
        Box::new(runs_bounded::RunsBounded::default()),
        Box::new(losses_bounded::LossesBounded),
        Box::new(due::NotBeforeDue),
        Box::new(due::NotAfterExpiry),
        Box::new(key_unique::KeyUnique::default()),
        Box::new(claim_order::ClaimOrder::default()),
        Box::new(retention::Retention::new(plan.settings.retention)),
        Box::new(verify::Verify::default()),
        Box::new(fenced::Fenced::default()),
        Box::new(superseded::Superseded),
        Box::new(version_rises::VersionRises),
        Box::new(ids_rise::IdsRise::default()),
        Box::new(lease_end::LeaseEnd),
        Box::new(slots::Slots::new(plan.caps.as_ref())),
        Box::new(rates::Rates::new(plan.caps.as_ref())),
        Box::new(paused::Paused::default()),
        Box::new(depth::Depth::new(plan)),
        Box::new(turns::Turns::default()),
    ]
}
