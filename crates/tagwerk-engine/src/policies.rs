//! What operators have laid down and every batch reads: settings of types, controls of queues, names of limits. The committer keeps a copy,
//! since few of them change and every job asks.

use std::collections::{BTreeSet, HashMap};

use crate::row::{QueueRow, TypeSettings};
use crate::store::{StoreResult, Tx};

/// By name; what nothing is said about is left out.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub(crate) types: HashMap<String, TypeSettings>,
    pub(crate) queues: HashMap<String, QueueRow>,
    /// Names of the limits that there are.
    pub(crate) limits: BTreeSet<String>,
}

impl Policies {
    /// As they are in the store.
    pub(crate) fn read(tx: &mut dyn Tx) -> StoreResult<Self> {
        let types = tx.types()?.into_iter().collect();
        let queues = tx.queue_rows()?.into_iter().map(|row| (row.name.clone(), row)).collect();
        let limits = tx.limits()?.into_iter().map(|limit| limit.name).collect();
        Ok(Self { types, queues, limits })
    }

    /// Takes over what a committed batch has changed.
    pub(crate) fn take(
        &mut self,
        types: Option<HashMap<String, TypeSettings>>,
        limits: Option<BTreeSet<String>>,
        queues: Option<HashMap<String, QueueRow>>,
    ) {
        if let Some(types) = types {
            self.types = types;
        }
        if let Some(limits) = limits {
            self.limits = limits;
        }
        if let Some(queues) = queues {
            self.queues = queues;
        }
    }
}
