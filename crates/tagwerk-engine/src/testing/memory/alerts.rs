//! Alerts in the memory store.

use std::collections::BTreeMap;

use tagwerk_core::limits;

use super::faults::Point;
use super::read::MemoryRead;
use super::tx::MemoryTx;
use crate::row::{AlertQuery, AlertRow, Which};
use crate::store::{AlertRead, AlertTx, StoreResult};

/// Alerts and what goes with them.
#[derive(Clone, Debug, Default)]
pub(super) struct Alerts {
    rows: BTreeMap<i64, AlertRow>,
    /// The highest number that was given.
    last: i64,
    marks: BTreeMap<String, i64>,
}

impl Alerts {
    fn put(&mut self, rows: &mut [AlertRow]) {
        for row in rows.iter_mut() {
            if row.id == 0 {
                self.last += 1;
                row.id = self.last;
            }
            let same = |other: &AlertRow| {
                other.closed_at.is_none() && (other.kind, &other.scope) == (row.kind, &row.scope)
            };
            let twice = self.rows.values().any(|other| other.id != row.id && same(other));
            assert!(!twice || row.closed_at.is_some(), "{row:?} is open already");
            self.rows.insert(row.id, row.clone());
        }
        let kept = self.last - i64::try_from(limits::ALERTS_KEPT_MAX).unwrap_or(i64::MAX);
        self.rows.retain(|id, row| *id > kept || !Which::Closed.takes(row) || Which::Due.takes(row));
    }
}

impl AlertTx for MemoryTx<'_> {
    fn open_alerts(&mut self) -> StoreResult<Vec<AlertRow>> {
        self.reach(Point::Method("open_alerts"))?;
        Ok(self.state.alerts.rows.values().filter(|row| Which::Open.takes(row)).cloned().collect())
    }

    fn alerts(&mut self, ids: &[i64]) -> StoreResult<Vec<Option<AlertRow>>> {
        self.reach(Point::Method("alerts"))?;
        Ok(ids.iter().map(|id| self.state.alerts.rows.get(id).cloned()).collect())
    }

    fn put_alerts(&mut self, rows: &mut [AlertRow]) -> StoreResult<()> {
        self.reach(Point::Method("put_alerts"))?;
        self.state.alerts.put(rows);
        Ok(())
    }

    fn put_alert_marks(&mut self, marks: &[(String, i64)]) -> StoreResult<()> {
        self.reach(Point::Method("put_alert_marks"))?;
        self.state.alerts.marks.extend(marks.iter().cloned());
        Ok(())
    }
}

impl AlertRead for MemoryRead {
    fn alerts(&mut self, query: &AlertQuery) -> StoreResult<Vec<AlertRow>> {
        let behind = self.state.alerts.rows.range(query.after.saturating_add(1)..).map(|(_, row)| row);
        Ok(behind.filter(|row| query.which.takes(row)).take(query.limit).cloned().collect())
    }

    fn alert_marks(&mut self) -> StoreResult<Vec<(String, i64)>> {
        Ok(self.state.alerts.marks.iter().map(|(kind, n)| (kind.clone(), *n)).collect())
    }
}
