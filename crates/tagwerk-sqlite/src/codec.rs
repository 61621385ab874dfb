//! Rows of SQL and rows of the engine: total conversions, one file per table.

pub(crate) mod attempt;
pub(crate) mod detail;
pub(crate) mod effect;
pub(crate) mod job;
pub(crate) mod key;
pub(crate) mod note;
pub(crate) mod queue;
pub(crate) mod settings;
