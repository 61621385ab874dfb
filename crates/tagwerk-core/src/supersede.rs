//! How a job's version of its object stands to the highest that was seen.

/// Where a version stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Higher than all before, or the first: the jobs with older ones are superseded.
    Newest,
    /// The highest again: another job about the same state of the object. Neither supersedes the other.
    Equal,
    /// Lower than one that was seen: the job is superseded as it comes.
    Older,
}

/// Compares a version with the highest that was seen, if any was.
#[must_use]
pub const fn standing(highest: Option<i64>, version: i64) -> Standing {
    match highest {
        Some(highest) if version < highest => Standing::Older,
        Some(highest) if version == highest => Standing::Equal,
        _ => Standing::Newest,
    }
}
