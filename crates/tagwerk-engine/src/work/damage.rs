//! Rows that cannot be read, as a batch meets them: whoever names one is refused, everybody else goes on, and a person may
//! delete it.
//!
//! A damaged job cannot be asked anything, so nothing here decides about one. Deleting it needs no decision: the rules allow
//! it in every state.

use tagwerk_core::idempotency::Standing;
use tagwerk_core::{JobId, Status};

use crate::command::Refusal;
use crate::row::{Counter, KeyWrite, Lane, Tally, Tombstone};
use crate::store::{StoreError, StoreResult, Unreadable};
use crate::work::Work;

impl Work<'_> {
    /// Reads the rows of these jobs unless they are known, and brings them up to date with time.
    pub(crate) fn load(&mut self, ids: &[JobId]) -> StoreResult<()> {
        let mut missing: Vec<JobId> =
            ids.iter().copied().filter(|id| !self.entries.contains_key(id)).collect();
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let rows = self.tx.load(&missing)?;
            for (id, row) in missing.into_iter().zip(rows) {
                match row {
                    Some(Ok(row)) => self.adopt(row),
                    Some(Err(why)) => {
                        self.damaged.insert(id, why);
                        self.entries.insert(id, None);
                    }
                    None => {
                        self.entries.insert(id, None);
                    }
                }
            }
        }
        ids.iter().try_for_each(|id| self.settle_if_readable(*id))
    }

    /// Brings a job up to date with time. One whose cold part, and with it its back-off, cannot be read stays as it is, and
    /// whoever names it is refused.
    pub(crate) fn settle_if_readable(&mut self, id: JobId) -> StoreResult<()> {
        match self.settle(id) {
            Err(StoreError::DamagedRow(why)) => {
                self.damaged.insert(id, Unreadable(why));
                Ok(())
            }
            settled => settled,
        }
    }

    /// Why a command about this job, which was loaded, can only be refused.
    pub(crate) fn absent(&self, id: JobId) -> Option<Refusal> {
        if self.damaged.contains_key(&id) {
            return Some(Refusal::JobDamaged(id));
        }
        self.row(id).is_none().then_some(Refusal::NoSuchJob(id))
    }

    /// Whether the row of this job, if there is one, cannot be read.
    pub(crate) fn is_damaged(&mut self, id: JobId) -> StoreResult<bool> {
        self.load(&[id])?;
        Ok(self.damaged.contains_key(&id))
    }

    /// What is wrong with a job that was loaded, its cold part included.
    pub(crate) fn damage(&mut self, id: JobId) -> StoreResult<Option<Unreadable>> {
        match self.load_details(&[id]) {
            Ok(()) | Err(StoreError::DamagedRow(_)) => Ok(self.damaged.get(&id).cloned()),
            Err(error) => Err(error),
        }
    }

    /// Removes a damaged job with everything. Where the ledger counts it is not to be learned from the row: it is where the
    /// ledger has more than there are rows without it. Its key goes on as that of a job which was cancelled after a start,
    /// since it may have run.
    pub(crate) fn erase_damaged(&mut self, id: JobId) -> StoreResult<()> {
        self.flush()?;
        let key = self.tx.key_of(id)?;
        if let Some(order) = self.tx.order_of(id)? {
            self.touch_order(order.into());
        }
        let hint = self.row(id).map(|row| (row.lane.clone(), row.job.status));
        self.tx.erase(&[id])?;
        self.entries.insert(id, None);
        self.damaged.remove(&id);
        let counted = self.surplus(hint.as_ref())?;
        if let Some((lane, status)) = &counted {
            self.count(lane.class, Counter::of_status(*status), -1);
            self.count(lane.class, Counter::Pruned, 1);
            self.recount_blocked(lane)?;
        }
        if let Some(mut row) = key {
            let kind = counted.map(|(lane, _)| lane.kind.to_string()).unwrap_or_default();
            let standing =
                Standing { status: Status::Cancelled, started: true, finished_at: Some(self.env.now) };
            row.tombstone = Some(Tombstone { kind, standing });
            self.write_key(KeyWrite::Replace { row, from: id });
        }
        Ok(())
    }

    /// Whether the row that is gone was a blocked one can be seen from those that are left.
    fn recount_blocked(&mut self, lane: &Lane) -> StoreResult<()> {
        let there = self.tx.blocked()?.into_iter().find(|(other, _)| other.class == lane.class);
        let said = |tally: &Tally| tally.get(Counter::Blocked);
        let stored = self
            .tx
            .ledger()?
            .iter()
            .find(|(other, _)| other.id == lane.class)
            .map_or(0, |(_, tally)| said(tally));
        let here = self.ledger.get(&lane.class).map_or(0, said);
        self.count(lane.class, Counter::Blocked, there.map_or(0, |(_, n)| n) - stored - here);
        Ok(())
    }

    /// Where the ledger, with what this batch adds to it, has more jobs than there are rows; of several such places the one
    /// that the row itself named.
    fn surplus(&mut self, hint: Option<&(Lane, Status)>) -> StoreResult<Option<(Lane, Status)>> {
        let rows = self.tx.counts()?;
        let mut found = Vec::new();
        for (lane, mut ledger) in self.tx.ledger()? {
            if let Some(delta) = self.ledger.get(&lane.class) {
                ledger.merge(delta);
            }
            for status in Status::ALL {
                let there = rows.iter().find(|(other, of, _)| other.id == lane.class && *of == status);
                if ledger.get(Counter::of_status(status)) > there.map_or(0, |(.., n)| *n) {
                    found.push((lane.clone(), status));
                }
            }
        }
        let is_named = |(lane, status): &(Lane, Status)| {
            hint.is_some_and(|(of, same)| of.class == lane.class && same == status)
        };
        let named = found.iter().find(|found| is_named(found)).cloned();
        Ok(named.or_else(|| found.into_iter().next()))
    }
}
