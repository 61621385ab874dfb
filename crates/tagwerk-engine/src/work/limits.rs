//! Limits that come into being with the jobs that name them (`limits.create_on_use`), in the transaction of those jobs.

use tagwerk_core::gate::LimitSettings;

use crate::row::LimitRef;
use crate::store::StoreResult;
use crate::work::Work;

impl Work<'_> {
    /// Makes those of these limits that there are not, for a job that is accepted. They bound nothing until somebody says more.
    pub(crate) fn make_limits(&mut self, named: &[LimitRef]) -> StoreResult<()> {
        for limit in named {
            if !self.knows_limit(&limit.name) {
                self.tx.put_limit(&limit.name, Some(&LimitSettings::default()))?;
                self.effects.limits_made.insert(limit.name.clone());
            }
        }
        Ok(())
    }

    /// Whether there is a limit of this name.
    pub(crate) fn knows_limit(&self, name: &str) -> bool {
        self.env.limits.contains(name) || self.effects.limits_made.contains(name)
    }
}
