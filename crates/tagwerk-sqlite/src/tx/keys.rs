//! Idempotency keys.

use rusqlite::{Connection, Statement, params};
use tagwerk_core::JobId;
use tagwerk_engine::row::{KeyRow, KeyWrite};
use tagwerk_engine::store::StoreError;

use crate::codec::key::{decode, execute, key_columns};
use crate::error::{Fail, Res, is_duplicate};

/// Reads a key.
pub(crate) const SELECT: &str = concat!("SELECT ", key_columns!(), " FROM idem_key WHERE key = ?1");
const INSERT: &str =
    concat!("INSERT INTO idem_key (", key_columns!(), ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
/// Takes a key over, guarded.
pub(crate) const REPLACE: &str = "UPDATE idem_key SET owner = ?2, scope = ?3, ttl_ms = ?4, fingerprint = ?5, tomb_status = ?6, \
     tomb_type = ?7, tomb_started = ?8, tomb_finished = ?9 WHERE key = ?1 AND owner = ?10";
const DELETE: &str = "DELETE FROM idem_key WHERE key = ?1 AND owner = ?2";
/// Remembers a job that no longer holds its key, while there is such a job.
pub(crate) const PUT_PAST: &str =
    "INSERT OR IGNORE INTO key_past (key, job) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM job WHERE id = ?2)";
/// The job holds its key again.
pub(crate) const DROP_PAST: &str = "DELETE FROM key_past WHERE key = ?1 AND job = ?2";
/// No index: it is asked for jobs that cannot be read.
const OF_OWNER: &str =
    concat!("SELECT ", key_columns!(), " FROM idem_key WHERE owner = ?1 AND tomb_status IS NULL");
/// Keys whose job is gone.
pub(crate) const TOMBSTONES: &str = concat!(
    "SELECT ",
    key_columns!(),
    " FROM idem_key INDEXED BY idem_tomb WHERE tomb_status IS NOT NULL AND key > ?1 ORDER BY key LIMIT ?2"
);

/// Reads keys.
pub(super) fn read(conn: &Connection, keys: &[&str]) -> Res<Vec<Option<KeyRow>>> {
    let mut select = conn.prepare_cached(SELECT)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let mut rows = select.query([key])?;
        found.push(rows.next()?.map(decode).transpose()?);
    }
    Ok(found)
}

/// The key that this job is the owner of; one that cannot be read is passed over.
pub(super) fn of_owner(conn: &Connection, owner: JobId) -> Res<Option<KeyRow>> {
    let mut select = conn.prepare_cached(OF_OWNER)?;
    let mut rows = select.query([owner.0])?;
    match rows.next()?.map(decode).transpose() {
        Err(Fail::Row(why)) => {
            tracing::error!(job = owner.0, why, "the key of a job cannot be read and is passed over");
            Ok(None)
        }
        found => found,
    }
}

/// Writes keys, guarded.
pub(super) fn write(conn: &Connection, writes: &[KeyWrite]) -> Res<()> {
    let mut add = conn.prepare_cached(INSERT)?;
    for write in writes {
        let changed = match write {
            KeyWrite::Insert(row) => insert(&mut add, row)?,
            KeyWrite::Replace { row, from } => {
                execute(&mut *conn.prepare_cached(REPLACE)?, row, Some(*from))?
            }
            KeyWrite::Delete { key, owner } => conn.prepare_cached(DELETE)?.execute(params![key, owner.0])?,
        };
        if changed != 1 {
            return Err(StoreError::Conflict.into());
        }
        let (key, before, after) = match write {
            KeyWrite::Insert(_) => continue,
            KeyWrite::Replace { row, from } => (&row.key, *from, Some(row.owner)),
            KeyWrite::Delete { key, owner } => (key, *owner, None),
        };
        if after != Some(before) {
            conn.prepare_cached(PUT_PAST)?.execute(params![key, before.0])?;
        }
        if let Some(after) = after {
            conn.prepare_cached(DROP_PAST)?.execute(params![key, after.0])?;
        }
    }
    Ok(())
}

/// The unique constraint decides, not a look before.
fn insert(statement: &mut Statement<'_>, row: &KeyRow) -> Res<usize> {
    match execute(statement, row, None) {
        Err(error) if is_duplicate(&error) => Err(StoreError::Conflict.into()),
        other => Ok(other?),
    }
}

/// Keys with a tombstone behind `after`.
pub(super) fn tombstones(conn: &Connection, after: &str, limit: usize) -> Res<Vec<KeyRow>> {
    let mut select = conn.prepare_cached(TOMBSTONES)?;
    let mut rows = select.query(params![after, i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        match decode(row) {
            Ok(key) => keys.push(key),
            Err(Fail::Row(why)) => tracing::error!(why, "a key cannot be read and is passed over"),
            Err(fail) => return Err(fail),
        }
    }
    Ok(keys)
}
