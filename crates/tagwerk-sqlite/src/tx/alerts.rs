//! Alerts in the writing transaction.

use tagwerk_engine::row::AlertRow;
use tagwerk_engine::store::{AlertTx, StoreResult};

use super::SqliteTx;
use crate::alert;

impl AlertTx for SqliteTx<'_> {
    fn open_alerts(&mut self) -> StoreResult<Vec<AlertRow>> {
        Ok(alert::open(&self.writer.conn)?)
    }

    fn alerts(&mut self, ids: &[i64]) -> StoreResult<Vec<Option<AlertRow>>> {
        Ok(ids.iter().map(|id| alert::find(&self.writer.conn, *id)).collect::<Result<_, _>>()?)
    }

    fn put_alerts(&mut self, rows: &mut [AlertRow]) -> StoreResult<()> {
        Ok(alert::put(&self.writing().conn, rows)?)
    }

    fn put_alert_marks(&mut self, marks: &[(String, i64)]) -> StoreResult<()> {
        Ok(alert::put_marks(&self.writing().conn, marks)?)
    }
}
