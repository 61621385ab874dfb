//! What a store keeps of alerts. A row that cannot be decoded stands in nobody's way: it is passed over.

use super::StoreResult;
use crate::row::{AlertQuery, AlertRow};

/// The part of a writing transaction that is about alerts.
pub trait AlertTx {
    /// Alerts that are open, by number.
    fn open_alerts(&mut self) -> StoreResult<Vec<AlertRow>>;
    /// Alerts of these numbers; `None` where there is none.
    fn alerts(&mut self, ids: &[i64]) -> StoreResult<Vec<Option<AlertRow>>>;
    /// Writes alerts. Those with number 0 are new and get one, above all that there ever were. Of one kind and scope only
    /// one may be open. Beyond [`tagwerk_core::limits::ALERTS_KEPT_MAX`] numbers the oldest go, if they are closed and nobody has still to
    /// be told of them.
    fn put_alerts(&mut self, rows: &mut [AlertRow]) -> StoreResult<()>;
    /// Writes up to which entry into review each of these types has been judged.
    fn put_alert_marks(&mut self, marks: &[(String, i64)]) -> StoreResult<()>;
}

/// The part of a snapshot that is about alerts.
pub trait AlertRead {
    /// A page of alerts, by number.
    fn alerts(&mut self, query: &AlertQuery) -> StoreResult<Vec<AlertRow>>;
    /// Up to which entry into review each type has been judged, by type.
    fn alert_marks(&mut self) -> StoreResult<Vec<(String, i64)>>;
}
