//! Faults on demand: a test says what fails how often, the store fails.

use std::sync::{Arc, Mutex};

use crate::store::{StoreError, StoreResult};
use crate::testing::lock;

/// Where a store can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// `Store::begin`.
    Begin,
    /// The method of `Tx` with this name.
    Method(&'static str),
    /// Whatever method of `Tx` comes next, except `commit`.
    AnyMethod,
    /// `Tx::commit`, before it took effect: nothing of the transaction is there afterwards.
    BeforeCommit,
    /// `Tx::commit`, after it took effect: the caller gets the error, but everything is there.
    AfterCommit,
    /// `Store::housekeeping`.
    Housekeeping,
    /// `Readers::snapshot`.
    Snapshot,
}

/// What is to fail. A handle; clones share their faults.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    planned: Arc<Mutex<Vec<Fault>>>,
}

/// One planned fault.
#[derive(Debug)]
pub struct Fault {
    /// Where it strikes.
    pub point: Point,
    /// What the caller gets.
    pub error: StoreError,
    /// How often the point passes unharmed before.
    pub spare: usize,
    /// How often it strikes then.
    pub times: usize,
}

impl Faults {
    /// Lets this point fail the next `times` times it is reached.
    pub fn fail(&self, point: Point, error: StoreError, times: usize) {
        self.plan(Fault { point, error, spare: 0, times });
    }

    /// Plans a fault, behind those already planned for the same point.
    pub fn plan(&self, fault: Fault) {
        assert!(fault.times > 0, "a fault that never happens was planned");
        lock(&self.planned).push(fault);
    }

    /// Forgets everything that was planned and has not happened.
    pub fn clear(&self) {
        lock(&self.planned).clear();
    }

    /// Whether everything that was planned has happened.
    pub fn are_spent(&self) -> bool {
        lock(&self.planned).is_empty()
    }

    /// A point of the store is reached.
    pub(super) fn reach(&self, here: Point) -> StoreResult<()> {
        let mut planned = lock(&self.planned);
        let Some(index) = planned.iter_mut().position(|fault| fault.strikes(here)) else { return Ok(()) };
        let error = copy(&planned[index].error);
        planned[index].times -= 1;
        if planned[index].times == 0 {
            planned.remove(index);
        }
        Err(error)
    }
}

impl Fault {
    fn strikes(&mut self, here: Point) -> bool {
        let meant =
            self.point == here || (self.point == Point::AnyMethod && matches!(here, Point::Method(_)));
        if !meant {
            return false;
        }
        if self.spare > 0 {
            self.spare -= 1;
            return false;
        }
        true
    }
}

fn copy(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy => StoreError::Busy,
        StoreError::Full => StoreError::Full,
        StoreError::ReadOnly => StoreError::ReadOnly,
        StoreError::Damaged(what) => StoreError::Damaged(what.clone()),
        StoreError::Gone(what) => StoreError::Gone(what.clone()),
        StoreError::Conflict => StoreError::Conflict,
        StoreError::OutcomeUnknown => StoreError::OutcomeUnknown,
        StoreError::DamagedRow(what) => StoreError::DamagedRow(what.clone()),
        StoreError::Other(what) => StoreError::Other(what.clone()),
    }
}
