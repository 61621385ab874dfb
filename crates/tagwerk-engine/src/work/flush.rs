//! What a batch has recorded goes to the store.

use crate::row::{Counter, Detail, JobRow, LaneId, Tally};
use crate::store::{Change, Insert, StoreResult};
use crate::work::{Effects, Entry, Stored, Work, damaged};

/// A payload up to this size stays in memory when its job is inserted, since the job is often handed out in the same batch.
const KEPT_PAYLOAD_BYTES: usize = 4_096;

impl Work<'_> {
    /// Hands everything that was recorded to the store.
    pub(crate) fn flush(&mut self) -> StoreResult<()> {
        let (mut inserts, mut changes, mut details) = (Vec::new(), Vec::new(), Vec::new());
        // Rows are handed to the store and taken back, not copied: after a failure nobody asks for them any more.
        for id in std::mem::take(&mut self.dirty) {
            let Some(Some(entry)) = self.entries.remove(&id) else { continue };
            let Entry { stored, after, detail, .. } = entry;
            match stored {
                Stored::No => {
                    self.count_blocked((false, after.is_blocked()), &after);
                    inserts.push(Insert { row: after, detail: detail.ok_or_else(|| damaged(id))? });
                }
                Stored::Was(before) => {
                    self.count_blocked((before.is_blocked(), after.is_blocked()), &after);
                    changes.push(Change { before: *before, after });
                    details.push(detail);
                }
                Stored::Same => self.keep(after, detail),
            }
        }
        write(&inserts, |rows| self.tx.insert(rows))?;
        write(&changes, |rows| self.tx.put(rows))?;
        for Insert { row, detail } in inserts {
            let is_small = detail.payload.len() <= KEPT_PAYLOAD_BYTES;
            self.keep(row, is_small.then_some(detail));
        }
        for (Change { after, .. }, detail) in changes.into_iter().zip(details) {
            self.keep(after, detail);
        }
        write(&std::mem::take(&mut self.payloads), |rows| self.tx.put_payloads(rows))?;
        write(&std::mem::take(&mut self.key_writes), |rows| self.tx.put_keys(rows))?;
        write(&std::mem::take(&mut self.version_writes), |rows| self.tx.put_versions(rows))?;
        write(&std::mem::take(&mut self.attempts), |rows| self.tx.put_attempts(rows))?;
        write(&std::mem::take(&mut self.refused), |rows| self.tx.note_refused(rows))?;
        write(&std::mem::take(&mut self.actions), |rows| self.tx.append_actions(rows))
    }

    /// A row that was blocked is not any more, or the other way round.
    fn count_blocked(&mut self, (was, is): (bool, bool), row: &JobRow) {
        if was != is {
            self.count(row.lane.class, Counter::Blocked, if is { 1 } else { -1 });
        }
    }

    /// A row that is in the store as it is here.
    fn keep(&mut self, row: JobRow, detail: Option<Detail>) {
        let id = row.job.id;
        let entry = Entry { stored: Stored::Same, after: row, detail, dirty: false };
        self.entries.insert(id, Some(entry));
    }

    /// Writes the rest and the ledger; what others must learn comes back.
    pub(crate) fn finish(mut self) -> StoreResult<Effects> {
        self.settle_turns()?;
        self.flush()?;
        let deltas: Vec<(LaneId, Tally)> =
            self.ledger.into_iter().filter(|(_, tally)| !tally.is_zero()).collect();
        write(&deltas, |rows| self.tx.add_ledger(rows))?;
        Ok(self.effects)
    }
}

fn write<T>(rows: &[T], write: impl FnOnce(&[T]) -> StoreResult<()>) -> StoreResult<()> {
    if rows.is_empty() { Ok(()) } else { write(rows) }
}
