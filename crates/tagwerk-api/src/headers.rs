//! Names of the headers that carry meaning beyond HTTP's own. Lower case, as HTTP/2 wants them.

/// Request: the idempotency key of an enqueue. A key given here makes `on_mismatch` default to `reject`.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Answer to an enqueue: `true` when the job existed before.
pub const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";
/// Answer to a report: `true` when the same report had been accepted before.
pub const REPORT_REPLAYED: &str = "report-replayed";
/// Answer to a report: names of the fields that were not known and ignored, separated by `, `.
pub const TAGWERK_IGNORED: &str = "tagwerk-ignored";
/// Answer to a claim that found nothing: when the next job that it could get is due (RFC 3339), if known.
pub const TAGWERK_NEXT_DUE: &str = "tagwerk-next-due";
/// Media type of every request body and every answer that is not a problem, but for streams.
pub const JSON: &str = "application/json";
/// Media type of a stream of jobs, one a line, and of the answer to it.
pub const NDJSON: &str = "application/x-ndjson";
/// Media type of every error answer.
pub const PROBLEM_JSON: &str = "application/problem+json";
