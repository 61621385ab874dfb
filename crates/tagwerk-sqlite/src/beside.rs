//! A store opened beside whoever serves it, for what is not a part of any job: API tokens.
//!
//! One short transaction at a time, which waits for the server's like any other writer. The server keeps nothing of these
//! rows that it does not read again.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tagwerk_core::Timestamp;
use tagwerk_engine::row::{AuditRow, TokenRow};
use tagwerk_engine::store::StoreResult;

use crate::connect::{self, Setup};
use crate::error::{Fail, Res};
use crate::open::{self, OpenError, Options};
use crate::{audit, token};

/// See the module.
pub struct Beside {
    conn: Connection,
}

impl Beside {
    /// Opens a store that is there and has the schema of this version.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        // Looks whether it is one of ours, and of this version.
        drop(open::open_read_only(path)?);
        let options = Options::new(Timestamp::EPOCH, [0; 32]);
        let setup = Setup { cache_bytes: options.reader_cache_bytes, busy_timeout: options.busy_timeout };
        let conn = connect::writing(path, setup)
            .and_then(|conn| connect::prepare_for_writing(&conn, options.wal_limit_bytes).map(|_| conn));
        let conn = conn.map_err(|error| OpenError::Store {
            path: path.to_owned(),
            error: crate::error::store_error(&error),
        })?;
        Ok(Self { conn })
    }

    /// All tokens by name.
    pub fn tokens(&self) -> StoreResult<Vec<TokenRow>> {
        Ok(token::read_all(&self.conn)?)
    }

    /// Adds a token, with its entry in the audit log. `false`: there is one of this name, and nothing was written.
    pub fn create_token(&mut self, token: &TokenRow, entry: &AuditRow) -> StoreResult<bool> {
        Ok(self.written(entry, |conn| token::insert(conn, token))?)
    }

    /// Removes a token, with its entry in the audit log. `false`: there is none of this name, and nothing was written.
    pub fn revoke_token(&mut self, name: &str, entry: &AuditRow) -> StoreResult<bool> {
        Ok(self.written(entry, |conn| token::delete(conn, name))?)
    }

    fn written(
        &mut self,
        entry: &AuditRow,
        write: impl FnOnce(&Transaction<'_>) -> Res<bool>,
    ) -> Result<bool, Fail> {
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let written = write(&transaction)?;
        if written {
            audit::append(&transaction, std::slice::from_ref(entry))?;
            transaction.commit()?;
        }
        Ok(written)
    }
}
