//! Execution of commands, one file per kind. All of them work on [`crate::work::Work`] and decide nothing about jobs
//! themselves.

pub(crate) mod admit;
pub(crate) mod alerts;
pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod claim;
pub(crate) mod defaults;
pub(crate) mod enqueue;
pub(crate) mod follow;
pub(crate) mod limits;
pub(crate) mod operate;
pub(crate) mod queues;
pub(crate) mod retention;
pub(crate) mod supersede;
pub(crate) mod time;
