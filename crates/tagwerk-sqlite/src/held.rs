//! The files that are served, held for life: one process per file, and nobody takes them away unnoticed.
//!
//! Two locks keep a second server away. One is on `<file>.lock`, which also tells who holds it; the other on the database
//! itself, so that another name for the same file, or a lock file that somebody has tidied up, opens no door. Both are
//! `flock` locks, which do not get in the way of SQLite's own. The database stays open here until SQLite has closed it:
//! closing any handle to it would let go of SQLite's locks.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tagwerk_engine::store::{StoreError, StoreResult};

use crate::open::{FILE_MODE, OpenError, Opening, beside};

/// How every SQLite file begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A file on its device.
type Identity = (u64, u64);

/// See the module.
pub(crate) struct Held {
    path: PathBuf,
    identity: Identity,
    wal: PathBuf,
    /// Known once SQLite has made the log.
    wal_identity: Option<Identity>,
    _lock: File,
    _database: File,
}

impl Held {
    /// Takes both locks, and creates the database with its mode before SQLite opens it, so that it is never readable for
    /// others.
    pub(crate) fn take(opening: &Opening<'_>) -> Result<Self, OpenError> {
        let lock = lock_beside(opening)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let mut database = options.open(opening.path).map_err(|error| opening.io(error))?;
        lock_file(opening, &database, "another process")?;
        let facts = database.metadata().map_err(|error| opening.io(error))?;
        if facts.nlink() > 1 {
            return Err(OpenError::HardLinked { path: opening.path() });
        }
        check_magic(opening, &mut database, &facts)?;
        Ok(Self {
            path: opening.path(),
            identity: identity(&facts),
            wal: beside(opening.path, "-wal"),
            wal_identity: None,
            _lock: lock,
            _database: database,
        })
    }

    /// Whether the files are still where they were. What is written to a file that was deleted is lost, so nobody may be
    /// told that it was stored.
    pub(crate) fn check(&mut self) -> StoreResult<()> {
        if found(&self.path) != Some(self.identity) {
            return Err(gone(&self.path));
        }
        let wal = found(&self.wal);
        match self.wal_identity {
            None => self.wal_identity = wal,
            known if known != wal => return Err(gone(&self.wal)),
            Some(_) => {}
        }
        Ok(())
    }
}

fn gone(path: &Path) -> StoreError {
    StoreError::Gone(path.display().to_string())
}

fn found(path: &Path) -> Option<Identity> {
    path.metadata().ok().map(|facts| identity(&facts))
}

fn identity(facts: &Metadata) -> Identity {
    (facts.dev(), facts.ino())
}

/// Takes the lock that tells who holds it.
fn lock_beside(opening: &Opening<'_>) -> Result<File, OpenError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
    let mut file = options.open(beside(opening.path, ".lock")).map_err(|error| opening.io(error))?;
    let mut holder = String::new();
    let read = file.read_to_string(&mut holder);
    let holder = if read.is_ok() && !holder.is_empty() { holder.trim() } else { "another process" };
    lock_file(opening, &file, holder)?;
    let write = |file: &mut File| {
        // Over what is there: on a full disk there is no room for it anew.
        file.rewind()?;
        writeln!(file, "process {}", std::process::id())?;
        let length = file.stream_position()?;
        file.set_len(length)
    };
    write(&mut file).map_err(|error| opening.io(error))?;
    Ok(file)
}

fn lock_file(opening: &Opening<'_>, file: &File, holder: &str) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(OpenError::InUse { path: opening.path(), holder: holder.to_owned() })
        }
        Err(TryLockError::Error(error)) => Err(opening.io(error)),
    }
}

/// A file that holds something is a database or is left alone. (SQLite takes a very short file for an empty one.)
fn check_magic(opening: &Opening<'_>, file: &mut File, facts: &Metadata) -> Result<(), OpenError> {
    if facts.len() == 0 {
        return Ok(());
    }
    let mut head = [0; MAGIC.len()];
    match file.read_exact(&mut head) {
        Ok(()) if head == *MAGIC => Ok(()),
        Ok(()) => Err(OpenError::NotADatabase { path: opening.path() }),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(OpenError::NotADatabase { path: opening.path() })
        }
        Err(error) => Err(opening.io(error)),
    }
}
