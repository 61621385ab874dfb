//! Idempotency keys.

use rusqlite::{Row, Statement, params};
use tagwerk_core::JobId;
use tagwerk_core::idempotency::Standing;
use tagwerk_engine::row::{KeyRow, Tombstone};

use crate::cells::Cells;
use crate::code::Code;
use crate::error::{Fail, Res};

/// The columns in the order in which [`decode`] reads and [`execute`] numbers them.
macro_rules! key_columns {
    () => {
        "key, owner, scope, ttl_ms, fingerprint, tomb_status, tomb_type, tomb_started, tomb_finished"
    };
}
pub(crate) use key_columns;

/// A key.
pub(crate) fn decode(row: &Row<'_>) -> Res<KeyRow> {
    let cells = Cells(row);
    let tombstone = match cells.maybe_code(5)? {
        Some(status) => Some(Tombstone {
            kind: cells.string(6)?,
            standing: Standing { status, started: cells.flag(7)?, finished_at: cells.maybe_time(8)? },
        }),
        None => None,
    };
    Ok(KeyRow {
        key: cells.string(0)?,
        owner: JobId(cells.int(1)?),
        scope: cells.code(2)?,
        ttl_ms: cells.int(3)?,
        fingerprint: cells
            .maybe_hash(4)?
            .ok_or_else(|| Fail::Row("column `fingerprint` is missing".to_owned()))?,
        tombstone,
    })
}

/// Runs a statement whose first nine parameters are a key. `from` is the tenth, if there is one.
pub(crate) fn execute(
    statement: &mut Statement<'_>,
    row: &KeyRow,
    from: Option<JobId>,
) -> rusqlite::Result<usize> {
    let tomb = row.tombstone.as_ref();
    let standing = tomb.map(|tomb| tomb.standing);
    let finished_at = standing.and_then(|standing| standing.finished_at);
    let columns = params![
        row.key,
        row.owner.0,
        row.scope.code(),
        row.ttl_ms,
        row.fingerprint,
        standing.map(|standing| standing.status.code()),
        tomb.map(|tomb| tomb.kind.as_str()),
        standing.map(|standing| standing.started),
        finished_at.map(tagwerk_core::Timestamp::as_millis),
    ];
    for (at, value) in (1..).zip(columns) {
        statement.raw_bind_parameter(at, value)?;
    }
    if let Some(from) = from {
        statement.raw_bind_parameter(10, from.0)?;
    }
    statement.raw_execute()
}
