//! What the server tells about limits.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::LimitSettings;
use crate::{LimitClosed, Time};

/// A limit or one of its partitions, as it is used now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitUse {
    /// The partition; `null` for the name alone.
    pub partition: Option<String>,
    /// Jobs that run under it.
    pub running: u32,
    /// How many may start now; `null` if nothing bounds it.
    pub open: Option<u32>,
    /// Why none may start now; `null` if one may.
    pub closed: Option<LimitClosed>,
    /// When time opens it; `null` if it is open, or if a job that runs must end first.
    pub opens_at: Option<Time>,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitInfo {
    /// Its name.
    pub name: String,
    /// What it bounds, each partition for itself.
    #[serde(flatten)]
    pub settings: LimitSettings,
    /// Jobs that run under it, in all partitions.
    pub running: u64,
    /// How many partitions are in use or were lately, the name alone among them.
    pub partitions: u64,
    /// How many of these a worker has held back (`throttle`) until a time that is still to come. `POST /limits/{name}/open`
    /// lifts that.
    pub throttled: u64,
    /// The first 100 of them, those with most running jobs first; `null` in lists.
    pub uses: Option<Vec<LimitUse>>,
}

/// `GET /limits`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitList {
    /// Ascending by name.
    pub limits: Vec<LimitInfo>,
    /// What to give as `after` for the next page; `null` at the end.
    pub next: Option<String>,
}

/// `DELETE /limits/{name}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitDeleted {
    /// Its name.
    pub name: String,
    /// Always true; a limit that is not there is a 404.
    pub deleted: bool,
}

/// What names a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitJobs {
    /// Jobs that wait, or may come back from review.
    pub waiting: u64,
    /// Jobs that run.
    pub running: u64,
    /// Types whose settings put new jobs under it.
    pub types: Vec<String>,
}
