//! The hot row.

use rusqlite::{Connection, Row, Statement, ToSql};
use tagwerk_core::{Job, JobId, Lease, LeaseBits, OnHeadFailure, OnUnknown, Priority, Status};
use tagwerk_engine::row::{JobRow, LaneId, Note, Order};

use crate::cells::Cells;
use crate::code::Code;
use crate::codec::{detail, effect, note};
use crate::error::{Fail, Res};
use crate::lanes::Lanes;

/// The columns in the order in which [`decode`] reads and [`bind`] numbers them.
macro_rules! job_columns {
    () => {
        "id, lane, prio, state, due, expires, max_age_ms, version, flags, attempt, leases, retry_count, max_retries, \
         lease_losses, max_lease_losses, release_count, failure, payload_bytes, created, updated, finished, \
         lease_until, lease_expires, time_limit, lease_ms, claimed, lease_bits, worker, request_id"
    };
}
pub(crate) use job_columns;

/// Number of [`job_columns`]; further parameters of a statement that uses [`bind`] come behind.
pub(crate) const COLUMNS: usize = 29;
/// Place of the id among the columns.
pub(crate) const ID: usize = 0;
/// Place of the state among the columns.
const STATE: usize = 3;
/// State of a pending job that waits for its turn in the order of its key.
const BLOCKED: i64 = 2;
/// Place of the due time among the columns.
pub(crate) const DUE: usize = 4;

/// Yes and no, packed into the column `flags`.
mod flag {
    pub(super) const STARTED: i64 = 1;
    pub(super) const VERIFY: i64 = 1 << 1;
    pub(super) const CANCEL_REQUESTED: i64 = 1 << 2;
    pub(super) const ACTED: i64 = 1 << 3;
    pub(super) const NEWEST_LOST: i64 = 1 << 4;
    pub(super) const EARLIER_LOST: i64 = 1 << 5;
    pub(super) const REVIEW_UNKNOWN: i64 = 1 << 6;
    /// The job has a row in `note`.
    pub(super) const HAS_NOTE: i64 = 1 << 7;
    /// The job stands in the order of its ordering key.
    pub(super) const ORDERED: i64 = 1 << 8;
    /// Those behind it go on when it fails.
    pub(super) const SKIPS: i64 = 1 << 9;
    /// The job has rows in `effect`.
    pub(super) const HAS_EFFECTS: i64 = 1 << 10;
    /// Whoever was given the newest lease deals with what an earlier attempt may have done.
    pub(super) const HANDLES_VERIFY: i64 = 1 << 11;
    pub(super) const ALL: i64 = (1 << 12) - 1;
}

/// How much of a job is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Everything.
    Full,
    /// Without result and checkpoint.
    List,
}

/// What decoding a row needs besides the row.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) lanes: &'a Lanes,
    pub(crate) depth: Depth,
}

impl Decoder<'_> {
    /// The row of [`job_columns`] with its note.
    pub(crate) fn decode(&self, row: &Row<'_>) -> Res<JobRow> {
        let cells = Cells(row);
        let decoded = self.hot(cells).and_then(|(mut row, flags)| {
            if flags & flag::HAS_NOTE != 0 {
                (row.job.error, row.job.superseded_by, row.note) =
                    note::read(self.conn, row.job.id, self.depth)?;
            }
            if flags & flag::HAS_EFFECTS != 0 {
                row.job.effects.extend(effect::read(self.conn, row.job.id, self.depth)?);
            }
            if flags & flag::ORDERED != 0 {
                row.order = Some(self.order(&row, (flags, cells.int(STATE)?))?);
            }
            Ok(row)
        });
        decoded.map_err(|fail| match fail {
            Fail::Row(why) => Fail::Row(format!("job {}: {why}", cells.int(ID).unwrap_or_default())),
            other => other,
        })
    }

    fn order(&self, row: &JobRow, (flags, state): (i64, i64)) -> Res<Box<Order>> {
        let ordering = detail::read_ordering(self.conn, row.job.id)?;
        let ordering =
            ordering.ok_or_else(|| Fail::Row("it stands in an order, but has no key".to_owned()))?;
        let skips = flags & flag::SKIPS != 0;
        let on_head_failure = if skips { OnHeadFailure::Skip } else { OnHeadFailure::Block };
        Ok(Box::new(Order { key: ordering.key, on_head_failure, blocked: state == BLOCKED }))
    }

    fn hot(&self, cells: Cells<'_>) -> Res<(JobRow, i64)> {
        let lane = LaneId(cells.int(1)?);
        let lane = self.lanes.get(lane).ok_or_else(|| Fail::Row(format!("there is no lane {}", lane.0)))?;
        let priority = Priority::from_value(cells.narrow(2)?)
            .ok_or_else(|| Fail::Row("column `prio` is out of range".to_owned()))?;
        let (job, flags) = job(cells)?;
        let (payload_bytes, lane) = (cells.narrow(17)?, lane.clone());
        Ok((JobRow { job, lane, priority, payload_bytes, note: Note::default(), order: None }, flags))
    }
}

fn job(cells: Cells<'_>) -> Res<(Job, i64)> {
    let flags = cells.int(8)?;
    if flags & !flag::ALL != 0 {
        return Err(Fail::Row(format!("column `flags` holds {flags}, which is from another version")));
    }
    let has = |flag| flags & flag != 0;
    let status: Status = cells.code(STATE)?;
    let job = Job {
        id: JobId(cells.int(ID)?),
        status,
        available_at: cells.time(DUE)?,
        expires_at: cells.maybe_time(5)?,
        max_age_ms: cells.maybe_int(6)?,
        version: cells.int(7)?,
        started: has(flag::STARTED),
        verify: has(flag::VERIFY),
        handles_verify: has(flag::HANDLES_VERIFY),
        cancel_requested: has(flag::CANCEL_REQUESTED),
        acted: has(flag::ACTED),
        newest_lost: has(flag::NEWEST_LOST),
        earlier_lost: has(flag::EARLIER_LOST),
        on_unknown: if has(flag::REVIEW_UNKNOWN) { OnUnknown::Review } else { OnUnknown::Verify },
        attempt: cells.narrow(9)?,
        leases: cells.narrow(10)?,
        retry_count: cells.narrow(11)?,
        max_retries: cells.narrow(12)?,
        lease_losses: cells.narrow(13)?,
        max_lease_losses: cells.narrow(14)?,
        release_count: cells.narrow(15)?,
        failure: cells.maybe_code(16)?,
        error: None,
        effects: Vec::new(),
        superseded_by: None,
        created_at: cells.time(18)?,
        updated_at: cells.time(19)?,
        finished_at: cells.maybe_time(20)?,
        lease: lease(cells, status)?,
    };
    Ok((job, flags))
}

fn lease(cells: Cells<'_>, status: Status) -> Res<Option<Lease>> {
    if status != Status::Running {
        // The guard of every change compares the bits, so nobody could ever change such a row.
        return match cells.maybe_int(26)? {
            None => Ok(None),
            Some(_) => Err(Fail::Row("it has a lease, but is not running".to_owned())),
        };
    }
    Ok(Some(Lease {
        expires_at: cells.time(22)?,
        time_limit_at: cells.maybe_time(23)?,
        lease_ms: cells.int(24)?,
        claimed_at: cells.time(25)?,
        bits: LeaseBits(cells.int(26)?.cast_unsigned()),
        worker: cells.string(27)?,
        request_id: cells.maybe_string(28)?,
    }))
}

/// The state as it is stored.
pub(crate) fn state(row: &JobRow) -> i64 {
    if row.is_blocked() { BLOCKED } else { row.job.status.code() }
}

/// Lease bits as they are stored.
pub(crate) fn lease_bits(row: &JobRow) -> Option<i64> {
    row.job.lease.as_ref().map(|lease| lease.bits.0.cast_signed())
}

fn flags(row: &JobRow) -> i64 {
    let job = &row.job;
    let pairs = [
        (job.started, flag::STARTED),
        (job.verify, flag::VERIFY),
        (job.cancel_requested, flag::CANCEL_REQUESTED),
        (job.acted, flag::ACTED),
        (job.newest_lost, flag::NEWEST_LOST),
        (job.earlier_lost, flag::EARLIER_LOST),
        (job.on_unknown == OnUnknown::Review, flag::REVIEW_UNKNOWN),
        (note::is_needed(row), flag::HAS_NOTE),
        (!job.effects.is_empty(), flag::HAS_EFFECTS),
        (job.handles_verify, flag::HANDLES_VERIFY),
    ];
    let flags: i64 = pairs.into_iter().filter_map(|(is_set, flag)| is_set.then_some(flag)).sum();
    match &row.order {
        None => flags,
        Some(order) if order.on_head_failure == OnHeadFailure::Skip => flags | flag::ORDERED | flag::SKIPS,
        Some(_) => flags | flag::ORDERED,
    }
}

/// Binds all columns of a row to the parameters `?1` … `?29`.
pub(crate) fn bind(statement: &mut Statement<'_>, row: &JobRow) -> Res<()> {
    // What is not bound is NULL: a new job has a dozen columns without a value.
    statement.clear_bindings();
    let job = &row.job;
    let columns: [Option<i64>; 21] = [
        Some(job.id.0),
        Some(row.lane.id.0),
        Some(row.priority.value().into()),
        Some(state(row)),
        Some(job.available_at.as_millis()),
        job.expires_at.map(tagwerk_core::Timestamp::as_millis),
        job.max_age_ms,
        Some(job.version),
        Some(flags(row)),
        Some(job.attempt.into()),
        Some(job.leases.into()),
        Some(job.retry_count.into()),
        Some(job.max_retries.into()),
        Some(job.lease_losses.into()),
        Some(job.max_lease_losses.into()),
        Some(job.release_count.into()),
        job.failure.map(Code::code),
        Some(row.payload_bytes.into()),
        Some(job.created_at.as_millis()),
        Some(job.updated_at.as_millis()),
        job.finished_at.map(tagwerk_core::Timestamp::as_millis),
    ];
    bind_some(statement, 1, columns)?;
    job.lease.as_ref().map_or(Ok(()), |lease| bind_lease(statement, lease))
}

fn bind_lease(statement: &mut Statement<'_>, lease: &Lease) -> Res<()> {
    let columns: [Option<i64>; 6] = [
        Some(lease.ends_at().as_millis()),
        Some(lease.expires_at.as_millis()),
        lease.time_limit_at.map(tagwerk_core::Timestamp::as_millis),
        Some(lease.lease_ms),
        Some(lease.claimed_at.as_millis()),
        Some(lease.bits.0.cast_signed()),
    ];
    bind_some(statement, 22, columns)?;
    bind_some(statement, 28, [Some(lease.worker.as_str()), lease.request_id.as_deref()])
}

/// Binds those that have a value to the parameters from `first` on; the bindings were cleared before.
pub(crate) fn bind_some<T: ToSql, const N: usize>(
    statement: &mut Statement<'_>,
    first: usize,
    values: [Option<T>; N],
) -> Res<()> {
    for (at, value) in (first..).zip(values) {
        if let Some(value) = value {
            statement.raw_bind_parameter(at, value)?;
        }
    }
    Ok(())
}
