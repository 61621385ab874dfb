//! Where a job stands in the order of its ordering key, as people are told.

use tagwerk_core::{JobId, Status, limits};

use crate::row::{JobRow, OrderRows};
use crate::store::{Read, StoreResult};

/// Place of a job in the order of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The job for which it waits: the one that runs, else the first.
    pub blocked_by: Option<JobId>,
    /// How many jobs a job in review holds back, counted up to [`limits::POSITION_EXACT_MAX`] + 1.
    pub blocks: Option<usize>,
}

/// The place of a job. Two seeks, and only for jobs that stand in an order.
pub fn place(read: &mut dyn Read, row: &JobRow) -> StoreResult<Place> {
    let Some(order) = &row.order else { return Ok(Place::default()) };
    match row.job.status {
        Status::Pending => {
            let before = holder(read.order(&order.key)?, row.job.id);
            Ok(Place { blocked_by: before.map(|row| row.job.id), blocks: None })
        }
        Status::Failed => {
            let cap = limits::POSITION_EXACT_MAX as usize + 1;
            Ok(Place { blocked_by: None, blocks: Some(read.followers(&order.key, row.job.id, cap)?) })
        }
        Status::Running | Status::Completed | Status::Cancelled => Ok(Place::default()),
    }
}

/// Who keeps a job that waits from its turn; `None` if it has it.
pub(super) fn holder(rows: OrderRows, id: JobId) -> Option<JobRow> {
    let OrderRows { lowest, open } = rows;
    let running = open.into_iter().find(|row| row.job.status == Status::Running);
    running.or(lowest).filter(|row| row.job.id != id)
}
