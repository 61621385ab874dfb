//! Versions of objects, as a batch knows them.

use tagwerk_core::JobId;

use crate::row::{VersionRow, VersionWrite, Versioned};
use crate::store::StoreResult;
use crate::work::Work;

impl Work<'_> {
    /// Reads the versions of these objects unless they are known.
    pub(crate) fn load_versions(&mut self, of: &[&Versioned]) -> StoreResult<()> {
        let mut wanted: Vec<&Versioned> =
            of.iter().copied().filter(|of| !self.versions.contains_key(*of)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(());
        }
        let rows = self.tx.versions(&wanted)?;
        self.versions.extend(wanted.into_iter().cloned().zip(rows));
        Ok(())
    }

    /// The versions of an object, which were loaded, as they are to be.
    pub(crate) fn version(&self, of: &Versioned) -> Option<&VersionRow> {
        self.versions.get(of)?.as_ref()
    }

    /// Does something with these jobs and writes it. Those of them that the batch has not met before are forgotten again, so
    /// that it can deal with more than should be in memory.
    pub(crate) fn pass_through(
        &mut self,
        jobs: &[JobId],
        act: impl FnOnce(&mut Self) -> StoreResult<()>,
    ) -> StoreResult<()> {
        let met: Vec<JobId> = jobs.iter().copied().filter(|id| !self.entries.contains_key(id)).collect();
        self.load(jobs)?;
        act(self)?;
        self.flush()?;
        for id in met {
            self.entries.remove(&id);
        }
        Ok(())
    }

    /// Writes a version.
    pub(crate) fn write_version(&mut self, write: VersionWrite) {
        match &write {
            VersionWrite::Raise { of, version, job } => {
                let row = VersionRow { version: *version, job: *job, open: vec![*job] };
                self.versions.insert(of.clone(), Some(row));
            }
            VersionWrite::Open { of, job } => {
                if let Some(Some(row)) = self.versions.get_mut(of)
                    && let Err(at) = row.open.binary_search(job)
                {
                    row.open.insert(at, *job);
                }
            }
        }
        self.version_writes.push(write);
    }
}
