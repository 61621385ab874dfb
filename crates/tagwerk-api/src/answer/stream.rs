//! Lines of the answer to a streamed `POST /jobs/bulk`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Problem;

/// A line that was refused. The others are not touched by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RefusedLine {
    /// Its number, from 1; blank lines count.
    pub line: u64,
    /// The status that a single call would have had.
    pub status: u16,
    /// Why it was refused. At most 10 of its errors are named.
    pub problem: Problem,
}

/// With `?results=all`: a line whose job is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredLine {
    /// Its number, from 1; blank lines count.
    pub line: u64,
    /// 201: the job was created. 200: it existed, and nothing was created.
    pub status: u16,
    /// The job.
    pub id: i64,
    /// The job existed, and what was sent first with its key differs from what was sent now.
    pub payload_differs: bool,
    /// For `on_duplicate: replace`: whether the existing job was rewritten; else `null`.
    pub replaced: Option<bool>,
}

/// The last line. An answer that ends without it is not finished: send the lines again, with their keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StreamEnd {
    /// Whether every line was judged. If not, `line` and `problem` say where and why it ended.
    pub done: bool,
    /// Jobs that are new.
    pub created: u64,
    /// Lines whose job existed.
    pub existing: u64,
    /// Lines that were refused, those that are not named one by one among them.
    pub refused: u64,
    /// If it ended early: the first line that was not judged. Every line before it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// If it ended early: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Problem>>,
}

/// Any line of the answer, for those who read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StreamLine {
    /// The last one.
    End(StreamEnd),
    /// A line whose job is there.
    Stored(StoredLine),
    /// A line that was refused.
    Refused(Box<RefusedLine>),
}
