//! Connections and their settings.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// Statements kept prepared per connection: more than there are.
const STATEMENTS: usize = 128;

/// How a connection is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Memory for pages.
    pub(crate) cache_bytes: u64,
    /// How long to wait for somebody else's lock.
    pub(crate) busy_timeout: Duration,
}

/// Opens the connection that writes. The file must exist.
pub(crate) fn writing(path: &Path, setup: Setup) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, setup)
}

/// Opens a connection that only reads.
pub(crate) fn reading(path: &Path, setup: Setup) -> rusqlite::Result<Connection> {
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, setup)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// Opens a file that nobody has open and that cannot be written, on the promise that nobody will.
pub(crate) fn reading_immutable(path: &Path, setup: Setup) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?immutable=1", encode(path));
    open(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI, setup)
}

/// Percent-encodes everything that means something in a URI.
fn encode(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;

    let mut encoded = String::new();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn open(path: &Path, flags: OpenFlags, setup: Setup) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite need not lock.
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(setup.busy_timeout)?;
    // Without it, every parameter that is compared near a partial index has the statement prepared anew.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    let cache_kib = i64::try_from(setup.cache_bytes / 1024).unwrap_or(i64::MAX);
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "foreign_keys", false)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    Ok(conn)
}

/// How SQLite keeps transactions apart and safe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    /// With a write-ahead log.
    Wal,
    /// It insists on something else.
    Other(String),
}

/// Settings of the connection that writes, once it is known that the file is ours.
pub(crate) fn prepare_for_writing(conn: &Connection, wal_limit_bytes: u64) -> rusqlite::Result<Journal> {
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Ok(Journal::Other(mode));
    }
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    let wal_limit_bytes = i64::try_from(wal_limit_bytes).unwrap_or(i64::MAX);
    conn.pragma_update(None, "journal_size_limit", wal_limit_bytes)?;
    Ok(Journal::Wal)
}
