//! Who owns which type: shown with every job, so kept in memory. Read anew whenever settings of a type change; this
//! process is the only one that changes them.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use super::App;
use super::problem::Refused;

/// Owners by type.
#[derive(Default)]
pub(super) struct Owners {
    known: RwLock<HashMap<String, String>>,
    /// One at a time, so that an older snapshot never overwrites a newer one.
    reloading: tokio::sync::Mutex<()>,
}

impl Owners {
    /// The owner of a type.
    pub(super) fn of(&self, kind: &str) -> Option<String> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }
}

impl App {
    /// Reads all owners anew.
    pub(super) async fn reload_owners(&self) -> Result<(), Refused> {
        let _turn = self.owners.reloading.lock().await;
        let types = self.read(|read| read.types()).await?;
        let owners = types.into_iter().filter_map(|(kind, settings)| Some((kind, settings.owner?))).collect();
        *self.owners.known.write().unwrap_or_else(PoisonError::into_inner) = owners;
        Ok(())
    }
}
