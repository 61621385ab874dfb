//! Versions of objects.

use rusqlite::{Connection, OptionalExtension, params};
use tagwerk_core::JobId;
use tagwerk_engine::row::{VersionRow, VersionWrite, Versioned};

use crate::error::Res;

/// Reads the highest version.
pub(crate) const SELECT: &str =
    "SELECT version, job FROM object_version WHERE type = ?1 AND kind = ?2 AND id = ?3";
/// Reads the open jobs.
pub(crate) const SELECT_OPEN: &str =
    "SELECT job FROM object_open WHERE type = ?1 AND kind = ?2 AND id = ?3 ORDER BY job";
const RAISE: &str = "INSERT INTO object_version (type, kind, id, version, job) VALUES (?1, ?2, ?3, ?4, ?5) \
     ON CONFLICT (type, kind, id) DO UPDATE SET version = excluded.version, job = excluded.job";
/// Forgets the open jobs.
pub(crate) const CLOSE: &str = "DELETE FROM object_open WHERE type = ?1 AND kind = ?2 AND id = ?3";
const OPEN: &str = "INSERT OR IGNORE INTO object_open (type, kind, id, job) VALUES (?1, ?2, ?3, ?4)";

/// Reads versions.
pub(super) fn read(conn: &Connection, of: &[&Versioned]) -> Res<Vec<Option<VersionRow>>> {
    let mut select = conn.prepare_cached(SELECT)?;
    let mut select_open = conn.prepare_cached(SELECT_OPEN)?;
    let mut found = Vec::with_capacity(of.len());
    for Versioned { kind, subject_kind, subject_id } in of {
        let object = params![kind, subject_kind, subject_id];
        let highest = select.query_row(object, |row| Ok((row.get(0)?, JobId(row.get(1)?)))).optional()?;
        found.push(match highest {
            None => None,
            Some((version, job)) => {
                let open = select_open.query_map(object, |row| row.get(0).map(JobId))?;
                Some(VersionRow { version, job, open: open.collect::<Result<_, _>>()? })
            }
        });
    }
    Ok(found)
}

/// Writes versions.
pub(super) fn write(conn: &Connection, writes: &[VersionWrite]) -> Res<()> {
    let open = |of: &Versioned, job: JobId| {
        let Versioned { kind, subject_kind, subject_id } = of;
        conn.prepare_cached(OPEN)?.execute(params![kind, subject_kind, subject_id, job.0])
    };
    for write in writes {
        match write {
            VersionWrite::Raise { of, version, job } => {
                let Versioned { kind, subject_kind, subject_id } = of;
                conn.prepare_cached(RAISE)?.execute(params![
                    kind,
                    subject_kind,
                    subject_id,
                    version,
                    job.0
                ])?;
                conn.prepare_cached(CLOSE)?.execute(params![kind, subject_kind, subject_id])?;
                open(of, *job)?;
            }
            VersionWrite::Open { of, job } => {
                open(of, *job)?;
            }
        }
    }
    Ok(())
}
