//! What a server may do, as a sequential and nondeterministic machine: in which states a call can be answered how, and what
//! time alone can do. Written from the text of the semantics.
//!
//! | module | subject |
//! |---|---|
//! | `job` | a job and its leases |
//! | `report` | complete, fail, release, heartbeat, checkpoint: who may, and what follows |
//! | `operate` | what people do |
//! | `time` | what happens by itself |
//! | `key` | how long a key holds |
//! | `world` | jobs and keys together, and every call on them |
//! | `agree` | whether an answer fits what happened |

mod agree;
mod job;
mod key;
mod operate;
mod report;
mod time;
mod world;

pub(crate) use agree::Strictness;
pub(crate) use job::Facts;
#[cfg(test)]
pub(crate) use job::{Age, End, Job, Lease, Life};
pub(crate) use time::Hidden;
#[cfg(test)]
pub(crate) use world::Says;
pub(crate) use world::{Circumstance, World};
