//! Bringing the schema up to date.
//!
//! Each migration runs once, in one transaction with its entry in the table `migration`. A file that has a migration
//! which this program does not know, or knows otherwise, is left alone.

use rusqlite::{Connection, OptionalExtension, params};
use tagwerk_core::Timestamp;

use crate::error::Res;

/// A step of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    /// Name of its file.
    pub(crate) name: &'static str,
    /// Its SQL.
    pub(crate) sql: &'static str,
}

/// All steps; the version of the schema is the number of steps taken.
pub(crate) const ALL: &[Migration] = &[
    Migration { name: "0001_init", sql: include_str!("../migrations/0001_init.sql") },
    Migration { name: "0002_key_past", sql: include_str!("../migrations/0002_key_past.sql") },
    Migration { name: "0003_type_rules", sql: include_str!("../migrations/0003_type_rules.sql") },
    Migration { name: "0004_limits", sql: include_str!("../migrations/0004_limits.sql") },
    Migration { name: "0005_versions", sql: include_str!("../migrations/0005_versions.sql") },
    Migration { name: "0006_queues", sql: include_str!("../migrations/0006_queues.sql") },
    Migration { name: "0007_order", sql: include_str!("../migrations/0007_order.sql") },
    Migration { name: "0008_view", sql: include_str!("../migrations/0008_view.sql") },
    Migration {
        name: "0009_blocked_and_type_order",
        sql: include_str!("../migrations/0009_blocked_and_type_order.sql"),
    },
    Migration { name: "0010_audit", sql: include_str!("../migrations/0010_audit.sql") },
    Migration { name: "0011_token", sql: include_str!("../migrations/0011_token.sql") },
    Migration { name: "0012_effects", sql: include_str!("../migrations/0012_effects.sql") },
    Migration { name: "0013_alerts", sql: include_str!("../migrations/0013_alerts.sql") },
    Migration { name: "0014_token_rate", sql: include_str!("../migrations/0014_token_rate.sql") },
    Migration { name: "0015_spaces", sql: include_str!("../migrations/0015_spaces.sql") },
];

const TABLE: &str = "CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY, name TEXT NOT NULL, \
     checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";
const HAS_TABLE: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'";
const SELECT: &str = "SELECT version, name, checksum FROM migration ORDER BY version";
const INSERT: &str = "INSERT INTO migration (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)";

/// How a schema stands to this program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has this version, and everything up to it is as this program knows it.
    Known(i64),
    /// It has a later version than this program knows.
    Newer(i64),
    /// This migration was applied with other content.
    Changed(String),
}

/// The latest version that this program knows.
pub(crate) fn latest(all: &[Migration]) -> i64 {
    i64::try_from(all.len()).unwrap_or(i64::MAX)
}

fn checksum(migration: &Migration) -> String {
    blake3::hash(migration.sql.as_bytes()).to_hex().to_string()
}

/// Looks at the schema of a file.
pub(crate) fn standing(conn: &Connection, all: &[Migration]) -> Res<Standing> {
    let has_table = conn.query_row(HAS_TABLE, [], |_| Ok(())).optional()?.is_some();
    if !has_table {
        return Ok(Standing::Known(0));
    }
    let mut select = conn.prepare(SELECT)?;
    let mut rows = select.query([])?;
    let (mut version, mut changed) = (0, None);
    while let Some(row) = rows.next()? {
        version = row.get(0)?;
        let (name, found): (String, String) = (row.get(1)?, row.get(2)?);
        let known = usize::try_from(version - 1).ok().and_then(|index| all.get(index));
        if known.is_some_and(|known| checksum(known) != found) {
            changed = changed.or(Some(name));
        }
    }
    Ok(match changed {
        _ if version > latest(all) => Standing::Newer(version),
        Some(name) => Standing::Changed(name),
        None => Standing::Known(version),
    })
}

/// Takes all steps that are missing. All or none.
pub(crate) fn run(conn: &Connection, all: &[Migration], now: Timestamp) -> Res<Standing> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let done = apply(conn, all, now);
    conn.execute_batch(if matches!(done, Ok(Standing::Known(_))) { "COMMIT" } else { "ROLLBACK" })?;
    done
}

fn apply(conn: &Connection, all: &[Migration], now: Timestamp) -> Res<Standing> {
    let Standing::Known(version) = standing(conn, all)? else { return standing(conn, all) };
    conn.execute_batch(TABLE)?;
    let missing = all.iter().zip(1..).skip(usize::try_from(version).unwrap_or(usize::MAX));
    for (migration, version) in missing {
        let _: i64 = version;
        conn.execute_batch(migration.sql)?;
        conn.execute(INSERT, params![version, migration.name, checksum(migration), now.as_millis()])?;
        tracing::info!(version, name = migration.name, "schema migrated");
    }
    Ok(Standing::Known(latest(all)))
}

/// Version of the schema.
pub(crate) fn version(conn: &Connection) -> Res<i64> {
    Ok(conn.query_row("SELECT coalesce(max(version), 0) FROM migration", [], |row| row.get(0))?)
}
