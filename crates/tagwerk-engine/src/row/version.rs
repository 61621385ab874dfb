//! Versions of the objects that jobs are about, as stores keep them.

use tagwerk_core::JobId;

/// What versions are compared of: a business object, and per type, since what another type does with the object is another
/// matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Versioned {
    /// Type of the jobs.
    pub kind: String,
    /// Kind of the object.
    pub subject_kind: String,
    /// Id of the object.
    pub subject_id: String,
}

/// The highest version of an object that was seen. Outlives its jobs, so that an old event that comes late finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow {
    /// That version.
    pub version: i64,
    /// The first job that carried it.
    pub job: JobId,
    /// The jobs that the next higher version supersedes if they have not come to their end by then; ascending.
    pub open: Vec<JobId>,
}

/// A write to the versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionWrite {
    /// A higher version than before, or the first: this job is the only open one.
    Raise {
        /// Of which object.
        of: Versioned,
        /// The version.
        version: i64,
        /// The job that carries it.
        job: JobId,
    },
    /// One more open job; there has been a version before. A job that is open stays so once.
    Open {
        /// Of which object.
        of: Versioned,
        /// The job.
        job: JobId,
    },
}
