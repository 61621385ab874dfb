//! Errors: what SQLite says, by what the caller does next.

use rusqlite::ErrorCode;
use tagwerk_engine::store::StoreError;

/// What can go wrong inside this crate. At its border it becomes a [`StoreError`].
#[derive(Debug)]
pub(crate) enum Fail {
    /// SQLite refused or failed.
    Sql(rusqlite::Error),
    /// One row cannot be decoded; all others are fine.
    Row(String),
    /// Already in the terms of the contract.
    Store(StoreError),
}

/// Result inside this crate.
pub(crate) type Res<T> = Result<T, Fail>;

impl From<rusqlite::Error> for Fail {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fail {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Fail> for StoreError {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Sql(error) => store_error(&error),
            // Not `Damaged`: one bad row is no reason to take the store out of service.
            Fail::Row(why) => Self::DamagedRow(why),
            Fail::Store(error) => error,
        }
    }
}

/// What a caller makes of an error of SQLite's.
pub(crate) fn store_error(error: &rusqlite::Error) -> StoreError {
    let (Some(code), extended) = (error.sqlite_error_code(), extended_code(error)) else {
        return StoreError::Other(error.to_string());
    };
    // There was no room for the log's index, which SQLite tells as an error of the disk.
    if extended == rusqlite::ffi::SQLITE_IOERR_SHMSIZE {
        return StoreError::Full;
    }
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy,
        ErrorCode::DiskFull => StoreError::Full,
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => StoreError::ReadOnly,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Damaged(error.to_string()),
        _ => StoreError::Other(format!("{error} (SQLite code {extended})")),
    }
}

/// SQLite's extended result code, 0 if the error is not SQLite's.
pub(crate) fn extended_code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |error| error.extended_code)
}

/// Whether a UNIQUE or PRIMARY KEY constraint refused a row.
pub(crate) fn is_duplicate(error: &rusqlite::Error) -> bool {
    matches!(
        extended_code(error),
        rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY
    )
}
