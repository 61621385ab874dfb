//! Opening a store file: for serving, or only to look at it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension};
use tagwerk_core::Timestamp;
use tagwerk_engine::store::StoreError;

use crate::connect::{self, Setup};
use crate::error::Fail;
use crate::held::Held;
use crate::migrate::{self, Standing};
use crate::mounts;
use crate::read::SqliteReaders;
use crate::store::SqliteStore;
use crate::wal::Checkpointer;
use crate::writer::Writer;

/// Marks our files in SQLite's header ("TGWK").
pub(crate) const APPLICATION_ID: i32 = 0x5447_574B;
/// Files are for their owner only: they hold payloads and the secret.
pub(crate) const FILE_MODE: u32 = 0o600;

const SELECT_SECRET: &str = "SELECT value FROM meta WHERE name = 'secret'";
const INSERT_SECRET: &str =
    "INSERT INTO meta (name, value) VALUES ('secret', ?1) ON CONFLICT (name) DO NOTHING";

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The present, for the record of migrations.
    pub now: Timestamp,
    /// 32 random bytes that become the store's secret if it is created now.
    pub new_secret: [u8; 32],
    /// Snapshots that can be open at once.
    pub readers: usize,
    /// Memory for pages of the writer. The hot pages of a queue of ten million jobs fit into the default, the system's
    /// own cache holds the rest. More is slower: at some commits SQLite looks at every page of its cache.
    pub cache_bytes: u64,
    /// Memory for pages of each reader.
    pub reader_cache_bytes: u64,
    /// How long a transaction waits for another process that writes.
    pub busy_timeout: Duration,
    /// How long a snapshot waits for its turn.
    pub reader_wait: Duration,
    /// From this size on, the write-ahead log is written back to its start as soon as no reader stands in the way.
    pub wal_restart_bytes: u64,
    /// Size to which the write-ahead log is cut back when it had to grow beyond it.
    pub wal_limit_bytes: u64,
    /// A write-ahead log of this size is kept when nothing is written: writing into a file that is there already is faster
    /// than letting it grow.
    pub wal_warm_bytes: u64,
}

impl Options {
    /// The defaults.
    #[must_use]
    pub const fn new(now: Timestamp, new_secret: [u8; 32]) -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            now,
            new_secret,
            readers: 4,
            cache_bytes: 16 * MIB,
            reader_cache_bytes: 4 * MIB,
            busy_timeout: Duration::from_secs(5),
            reader_wait: Duration::from_secs(5),
            wal_restart_bytes: 24 * MIB,
            wal_limit_bytes: 64 * MIB,
            wal_warm_bytes: 4 * MIB,
        }
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process serves this file.
    #[error(
        "{path} is in use by another tagwerk server ({holder}); stop that one first, or give this one a file of its own"
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// Its process id as it wrote it.
        holder: String,
    },
    /// There is no such file.
    #[error("there is no store at {path}; check the path, or start `tagwerk serve` there to create one")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It is no file.
    #[error("{path} is a directory; name the file of the store in it")]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// A file without anything in it, opened only for reading.
    #[error(
        "{path} is empty, so tagwerk did not make it; check the path, or start `tagwerk serve` there to create a store"
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The folder does not exist.
    #[error("the folder of {path} does not exist; create it first")]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// File or folder cannot be written.
    #[error(
        "{path} cannot be written; check owner and permissions of the file and its folder, and that the disk is not mounted read-only"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// There is no room for the file, its log or the log's index.
    #[error("the disk that holds {path} is full; free some space and start again")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file is on a file system on which SQLite's log would be damaged.
    #[error("{path} is on a network file system ({kind}); SQLite needs a local disk, move the store there")]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// Kind of file system.
        kind: String,
    },
    /// The file is not an SQLite database, or its header is damaged.
    #[error(
        "{path} is not a SQLite database, or its first page is damaged; check the path, or restore a backup"
    )]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is an SQLite database of some other application.
    #[error("{path} belongs to another application; give tagwerk a file of its own")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "{path} has schema {found}, this version knows up to {known}; use the newer tagwerk, or restore a backup"
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: i64,
        /// Newest version that this program knows.
        known: i64,
    },
    /// The file is from an older version and was opened only for reading.
    #[error(
        "{path} has schema {found}, this version reads {known}; start `tagwerk serve` once to bring it up to date"
    )]
    OlderSchema {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// The file has another name as well. What is in the write-ahead log is found by one name only.
    #[error(
        "{path}: this file has a second name (a hard link); opened by the wrong one it lacks what stands in the log of the \
         other. Remove the other name, or serve a copy (cp without -l)"
    )]
    HardLinked {
        /// The file.
        path: PathBuf,
    },
    /// A migration in the file is not the one that this version has under its name.
    #[error(
        "{path}: migration {name} was applied with other content; this file is from another build of tagwerk"
    )]
    ChangedMigration {
        /// The file.
        path: PathBuf,
        /// Name of the migration.
        name: String,
    },
    /// Something else about the file system.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// Something else about the store.
    #[error("{path}: {error}")]
    Store {
        /// The file.
        path: PathBuf,
        /// What the store says.
        #[source]
        error: StoreError,
    },
}

/// Speaks of one file.
pub(crate) struct Opening<'a> {
    pub(crate) path: &'a Path,
}

impl Opening<'_> {
    pub(crate) fn path(&self) -> PathBuf {
        self.path.to_owned()
    }

    pub(crate) fn io(&self, error: std::io::Error) -> OpenError {
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                OpenError::ReadOnly { path: self.path() }
            }
            ErrorKind::NotFound => OpenError::NoFolder { path: self.path() },
            ErrorKind::StorageFull => OpenError::Full { path: self.path() },
            ErrorKind::IsADirectory => OpenError::Directory { path: self.path() },
            _ => OpenError::Io { path: self.path(), error },
        }
    }

    fn sql(&self, error: &rusqlite::Error) -> OpenError {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path: self.path() },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => OpenError::ReadOnly { path: self.path() },
            _ => self.store(crate::error::store_error(error)),
        }
    }

    fn fail(&self, fail: Fail) -> OpenError {
        match fail {
            Fail::Sql(error) => self.sql(&error),
            other => self.store(other.into()),
        }
    }

    fn store(&self, error: StoreError) -> OpenError {
        match error {
            StoreError::Full => OpenError::Full { path: self.path() },
            error => OpenError::Store { path: self.path(), error },
        }
    }

    /// Whether the file is ours. One without any table is new.
    fn check_owner(&self, conn: &Connection) -> Result<Owner, OpenError> {
        let id: i32 = conn
            .pragma_query_value(None, "application_id", |row| row.get(0))
            .map_err(|error| self.sql(&error))?;
        if id == APPLICATION_ID {
            return Ok(Owner::Ours);
        }
        let first = conn.query_row("SELECT 1 FROM sqlite_schema LIMIT 1", [], |_| Ok(())).optional();
        let is_empty = first.map_err(|error| self.sql(&error))?.is_none();
        if id == 0 && is_empty { Ok(Owner::Nobody) } else { Err(OpenError::Foreign { path: self.path() }) }
    }

    fn refuse(&self, standing: Standing) -> Result<i64, OpenError> {
        match standing {
            Standing::Known(version) => Ok(version),
            Standing::Newer(found) => {
                Err(OpenError::NewerSchema { path: self.path(), found, known: migrate::latest(migrate::ALL) })
            }
            Standing::Changed(name) => Err(OpenError::ChangedMigration { path: self.path(), name }),
        }
    }
}

enum Owner {
    Ours,
    Nobody,
}

/// The path of a file that belongs to a store file.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// One name for one file, whatever way it was given: links are followed, so that they share the lock.
fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let given = || path.to_owned();
    let (Some(name), parent) = (path.file_name(), path.parent()) else {
        return Err(OpenError::NoFolder { path: given() });
    };
    let parent = parent.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.canonicalize().map_err(|_| OpenError::NoFolder { path: given() })?;
    Ok(parent.join(name))
}

/// Opens a store for serving.
pub(crate) fn open(path: &Path, options: &Options) -> Result<SqliteStore, OpenError> {
    let path = resolve(path)?;
    let opening = Opening { path: &path };
    if let Some(kind) = path.parent().and_then(mounts::network_kind) {
        return Err(OpenError::NetworkFileSystem { path, kind });
    }
    let mut held = Held::take(&opening)?;
    let setup = Setup { cache_bytes: options.cache_bytes, busy_timeout: options.busy_timeout };
    let conn = connect::writing(&path, setup).map_err(|error| opening.sql(&error))?;
    let secret = prepare(&opening, &conn, options)?;
    let readers = SqliteReaders::new(path.clone(), options);
    let writer = Writer::new(conn, readers.damaged()).map_err(|fail| opening.fail(fail))?;
    let checkpointer = Checkpointer::start(&path, options).map_err(|fail| opening.fail(fail))?;
    held.check().map_err(|error| OpenError::Store { path: path.clone(), error })?;
    Ok(SqliteStore::new(writer, Arc::new(readers), (secret, held, checkpointer)))
}

/// Makes a file ours, its schema current, its secret known.
fn prepare(opening: &Opening<'_>, conn: &Connection, options: &Options) -> Result<[u8; 32], OpenError> {
    if conn.is_readonly("main").map_err(|error| opening.sql(&error))? {
        return Err(OpenError::ReadOnly { path: opening.path() });
    }
    let owner = opening.check_owner(conn)?;
    let standing = migrate::standing(conn, migrate::ALL).map_err(|fail| opening.fail(fail))?;
    opening.refuse(standing)?;
    let journal =
        connect::prepare_for_writing(conn, options.wal_limit_bytes).map_err(|error| opening.sql(&error))?;
    if let connect::Journal::Other(mode) = journal {
        let why = format!(
            "no write-ahead log is possible here, SQLite stays in journal mode `{mode}`; use a local disk"
        );
        return Err(OpenError::Store { path: opening.path(), error: StoreError::Other(why) });
    }
    if matches!(owner, Owner::Nobody) {
        conn.pragma_update(None, "application_id", APPLICATION_ID).map_err(|error| opening.sql(&error))?;
    }
    let migrated = migrate::run(conn, migrate::ALL, options.now).map_err(|fail| opening.fail(fail))?;
    opening.refuse(migrated)?;
    conn.execute(INSERT_SECRET, [options.new_secret]).map_err(|error| opening.sql(&error))?;
    conn.query_row(SELECT_SECRET, [], |row| row.get(0)).map_err(|error| opening.sql(&error))
}

/// Opens a store only to read it, beside a server or without one.
pub(crate) fn open_read_only(path: &Path) -> Result<Arc<SqliteReaders>, OpenError> {
    let path = path.canonicalize().map_err(|_| OpenError::Missing { path: path.to_owned() })?;
    let opening = Opening { path: &path };
    let facts = path.metadata().map_err(|error| opening.io(error))?;
    if facts.is_dir() {
        return Err(OpenError::Directory { path });
    }
    let readers = SqliteReaders::new(path.clone(), &Options::new(Timestamp::EPOCH, [0; 32]));
    let readers = readers.probe().map_err(|fail| opening.fail(fail))?;
    readers.with_connection(|conn| {
        if matches!(opening.check_owner(conn)?, Owner::Nobody) {
            let path = opening.path();
            return Err(if facts.len() == 0 {
                OpenError::Empty { path }
            } else {
                OpenError::Foreign { path }
            });
        }
        let standing = migrate::standing(conn, migrate::ALL).map_err(|fail| opening.fail(fail))?;
        let (found, known) = (opening.refuse(standing)?, migrate::latest(migrate::ALL));
        if found < known {
            return Err(OpenError::OlderSchema { path: opening.path(), found, known });
        }
        Ok(())
    })?;
    Ok(Arc::new(readers))
}
