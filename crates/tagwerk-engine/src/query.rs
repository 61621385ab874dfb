//! The reading side: questions that are answered from one snapshot of the store and from what this node has seen. Nothing
//! here changes anything, and nothing here waits for the committer.

pub mod check;
pub mod explain;
pub mod limits;
pub mod overview;
pub mod turns;

pub use check::{Checked, Depth, Finding, check};
pub use explain::{Explanation, Why, WhyKind, explain};
pub use limits::{Closed, closed};
pub use overview::{Overview, QueueView, TypeView, WorkerView, overview, queues, types, workers};
pub use turns::{Place, place};
