//! Pages of jobs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::job::{DamagedJob, JobSummary};

/// A page of `GET /jobs`, ascending by id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobsPage {
    /// The jobs.
    pub jobs: Vec<JobSummary>,
    /// Rows of this page that cannot be read; empty unless the file was damaged.
    pub damaged: Vec<DamagedJob>,
    /// What to give as `after` for the next page; `null` at the end. A page looks at a bounded number of rows, so with a filter
    /// it may be short or empty while there is a next one.
    pub next: Option<String>,
}

/// A page of `GET /review`: failed jobs, ascending by id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReviewPage {
    /// The jobs.
    pub jobs: Vec<JobSummary>,
    /// Rows of this page that cannot be read; empty unless the file was damaged.
    pub damaged: Vec<DamagedJob>,
    /// What to give as `after` for the next page; `null` at the end. A page looks at a bounded number of rows, so with a filter
    /// it may be short or empty while there is a next one.
    pub next: Option<String>,
}
