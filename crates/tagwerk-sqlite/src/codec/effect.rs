//! The effect journals. The hot row's flags say whether a job has one, so that nobody looks in vain.

use std::sync::Arc;

use rusqlite::{Connection, params};
use tagwerk_core::{Effect, JobId};

use crate::cells::Cells;
use crate::code::Code;
use crate::codec::job::Depth;
use crate::error::{Fail, Res};

/// Reads a journal, in the order in which its effects were first begun.
pub(crate) const SELECT: &str =
    "SELECT name, state, assumed, key, seq, begun, ended, result FROM effect WHERE job = ?1 ORDER BY n";
const UPSERT: &str = "INSERT INTO effect (job, n, name, state, assumed, key, seq, begun, ended, result) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (job, n) DO UPDATE SET name = excluded.name, \
     state = excluded.state, assumed = excluded.assumed, key = excluded.key, seq = excluded.seq, begun = excluded.begun, \
     ended = excluded.ended, result = excluded.result";
/// Forgets what a journal does not have any more.
pub(crate) const TRIM: &str = "DELETE FROM effect WHERE job = ?1 AND n >= ?2";

/// The journal of a job whose flags say that it has one.
pub(crate) fn read(conn: &Connection, job: JobId, depth: Depth) -> Res<Vec<Effect>> {
    let mut select = conn.prepare_cached(SELECT)?;
    let mut rows = select.query([job.0])?;
    let mut effects = Vec::new();
    while let Some(row) = rows.next()? {
        effects.push(decode(Cells(row), depth)?);
    }
    if effects.is_empty() { Err(Fail::Row("its effects are missing".to_owned())) } else { Ok(effects) }
}

fn decode(cells: Cells<'_>, depth: Depth) -> Res<Effect> {
    let result = match depth {
        Depth::Full => cells.maybe_string(7)?.map(Arc::from),
        Depth::List => None,
    };
    Ok(Effect {
        name: cells.string(0)?.into(),
        state: cells.code(1)?,
        assumed: cells.flag(2)?,
        key: cells.string(3)?.into(),
        seq: cells.narrow(4)?,
        begun_at: cells.time(5)?,
        ended_at: cells.maybe_time(6)?,
        result,
    })
}

/// Writes what is not as it was.
pub(crate) fn write(conn: &Connection, job: JobId, (before, after): (&[Effect], &[Effect])) -> Res<()> {
    let mut upsert = conn.prepare_cached(UPSERT)?;
    for (n, effect) in (0_i64..).zip(after) {
        let known = usize::try_from(n).ok().and_then(|n| before.get(n));
        if known == Some(effect) {
            continue;
        }
        upsert.execute(params![
            job.0,
            n,
            &*effect.name,
            effect.state.code(),
            effect.assumed,
            &*effect.key,
            effect.seq,
            effect.begun_at.as_millis(),
            effect.ended_at.map(tagwerk_core::Timestamp::as_millis),
            effect.result.as_deref(),
        ])?;
    }
    if after.len() < before.len() {
        let len = i64::try_from(after.len()).unwrap_or(i64::MAX);
        conn.prepare_cached(TRIM)?.execute(params![job.0, len])?;
    }
    Ok(())
}
