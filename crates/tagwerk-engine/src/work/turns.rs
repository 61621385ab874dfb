//! Whose turn it is in the order of an ordering key.
//!
//! The batch remembers which keys it has touched. Before claims are served, [`Work::settle_turns`] asks the store once for
//! all of them who stands first and who is not blocked, and puts that right by the one rule of the core. Every way out of
//! the waiting, the running or the review leads through it. A batch without ordering keys has nothing here.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tagwerk_core::{JobId, Status, order};

use crate::row::{JobRow, Order, OrderRows, Ordering};
use crate::store::{StoreError, StoreResult};
use crate::work::{Work, note_waiting};

/// See the module.
#[derive(Default)]
pub(super) struct Orders {
    /// Keys whose turn is to be judged anew.
    touched: BTreeSet<Arc<str>>,
    /// Jobs that wait again after they had left an order, if they ever stood in one: their cold part says.
    returned: Vec<JobId>,
    /// Keys that new jobs of this batch name: whether anybody stands before the next one.
    taken: HashMap<Arc<str>, bool>,
}

/// The status of a job has changed: what that means for its place, and for its key.
pub(super) fn moved(orders: &mut Option<Box<Orders>>, row: &mut JobRow, was: Status) {
    let status = row.job.status;
    let Some(order) = &mut row.order else {
        if status == Status::Pending && was.is_settled() {
            orders.get_or_insert_default().returned.push(row.job.id);
        }
        return;
    };
    // Whoever is handed out had the turn, and has it until it is back.
    if status != Status::Running {
        orders.get_or_insert_default().touched.insert(Arc::clone(&order.key));
    }
    // Who comes back from an attempt has most likely the turn still; who comes back from review has to wait and see.
    order.blocked = status == Status::Pending && was != Status::Running;
    if !order::stands(status, order.on_head_failure) {
        row.order = None;
    }
}

impl Work<'_> {
    /// Looks up who stands in the orders that new jobs name.
    pub(crate) fn load_orders<'o>(&mut self, named: impl Iterator<Item = &'o Ordering>) -> StoreResult<()> {
        let mut keys: Vec<&Arc<str>> = Vec::new();
        for ordering in named {
            if !self.orders.get_or_insert_default().taken.contains_key(&ordering.key) {
                keys.push(&ordering.key);
            }
        }
        if keys.is_empty() {
            return Ok(());
        }
        keys.sort_unstable();
        keys.dedup();
        let wanted: Vec<&str> = keys.iter().map(|key| &***key).collect();
        let found = self.tx.orders(&wanted)?;
        let found = keys.into_iter().zip(found).map(|(key, rows)| (Arc::clone(key), rows.lowest.is_some()));
        self.orders.get_or_insert_default().taken.extend(found);
        Ok(())
    }

    /// The place of a new job: behind all that stand in the order of its key. Those who leave in this batch make it right
    /// when they do.
    pub(crate) fn line_up(&mut self, ordering: &Ordering) -> Order {
        let orders = self.orders.get_or_insert_default();
        let blocked = orders.taken.insert(Arc::clone(&ordering.key), true).unwrap_or_default();
        let on_head_failure = ordering.on_head_failure.unwrap_or_default();
        Order { key: Arc::clone(&ordering.key), on_head_failure, blocked }
    }

    /// The turn of this key is to be judged anew.
    pub(crate) fn touch_order(&mut self, key: Arc<str>) {
        self.orders.get_or_insert_default().touched.insert(key);
    }

    /// A job in review lets those behind it go on.
    pub(crate) fn leave_order(&mut self, id: JobId) {
        if let Some(order) = self.row(id).and_then(|row| row.order.as_ref()) {
            let key = Arc::clone(&order.key);
            self.touch_order(key);
            self.edit(id, |row| row.order = None);
        }
    }

    /// Gives the turn of every key that was touched to whom it belongs. What becomes claimable by it is noted.
    pub(crate) fn settle_turns(&mut self) -> StoreResult<()> {
        let Some(orders) = &mut self.orders else { return Ok(()) };
        let returned = std::mem::take(&mut orders.returned);
        self.put_back(&returned)?;
        let Some(orders) = &mut self.orders else { return Ok(()) };
        let touched = std::mem::take(&mut orders.touched);
        if touched.is_empty() {
            return Ok(());
        }
        self.flush()?;
        let keys: Vec<&str> = touched.iter().map(|key| &**key).collect();
        for OrderRows { lowest, open } in self.tx.orders(&keys)? {
            let running = open.iter().find(|row| row.job.status == Status::Running).map(|row| row.job.id);
            let turn = order::turn(lowest.as_ref().map(|row| (row.job.id, row.job.status)), running);
            for row in lowest.into_iter().chain(open) {
                self.give_turn(row, turn);
            }
        }
        self.flush()
    }

    fn give_turn(&mut self, row: JobRow, turn: Option<JobId>) {
        let (id, blocked) = (row.job.id, turn != Some(row.job.id));
        self.adopt(row);
        let waits_wrongly = |row: &JobRow| row.job.status == Status::Pending && row.is_blocked() != blocked;
        if !self.row(id).is_some_and(waits_wrongly) {
            return;
        }
        self.edit(id, |row| {
            if let Some(order) = &mut row.order {
                order.blocked = blocked;
            }
        });
        if let Some(Some(entry)) = self.entries.get(&id) {
            note_waiting((&mut self.effects, self.env.now), &entry.after);
        }
    }

    /// Jobs that wait again take their place in the order that they had left.
    fn put_back(&mut self, returned: &[JobId]) -> StoreResult<()> {
        for id in returned {
            let ordering = match self.detail(*id) {
                Ok(detail) => detail.ordering.clone(),
                // Nobody will be handed it, so it needs no place.
                Err(StoreError::DamagedRow(_)) => None,
                Err(error) => return Err(error),
            };
            let Some(ordering) = ordering else { continue };
            let Ordering { key, on_head_failure } = *ordering;
            let on_head_failure = on_head_failure.unwrap_or_default();
            let is_waiting = self.row(*id).is_some_and(|row| row.job.status == Status::Pending);
            if is_waiting {
                self.touch_order(Arc::clone(&key));
                let order = Order { key, on_head_failure, blocked: true };
                self.edit(*id, |row| row.order = Some(Box::new(order)));
            }
        }
        Ok(())
    }
}
