//! Every limit and every default, in one place, each with its reason. A limit that is not here does not exist.
//!
//! Lengths of text are in bytes of UTF-8, times in milliseconds. [`check`] holds the functions that apply them.

pub mod check;

pub use check::{LimitError, Range};

use crate::alert::Kind;

/// A second in milliseconds.
pub const SECOND_MS: i64 = 1_000;
/// A minute in milliseconds.
pub const MINUTE_MS: i64 = 60 * SECOND_MS;
/// An hour in milliseconds.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// A day of 24 hours in milliseconds.
pub const DAY_MS: i64 = 24 * HOUR_MS;
const YEAR_MS: i64 = 365 * DAY_MS;
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

// ---- The job ----

/// Largest job id: the largest integer that every JSON reader holds exactly (2^53 - 1).
pub const JOB_ID_MAX: i64 = (1 << 53) - 1;
/// Name of a queue, limit or schedule: fits a file name, a metric label and a line of a table.
pub const NAME_MAX_BYTES: usize = 64;
/// The queue of a job that names none. One queue is enough for a start.
pub const QUEUE_DEFAULT: &str = "default";
/// Job type: fully qualified class names of the longest frameworks fit, and it stays indexable.
pub const TYPE_MAX_BYTES: usize = 255;
/// Idempotency, ordering and fair keys, subject and correlation ids: a UUID or a URL path fits, and an index over them
/// stays narrow (`PostgreSQL` refuses index rows above 2,700 bytes).
pub const KEY_MAX_BYTES: usize = 255;
/// `traceparent`: version 00 has 55 bytes; later versions may be longer and are passed on unread.
pub const TRACEPARENT_MAX_BYTES: usize = 255;
/// `worker_id`: host name (253 at most) and a process id.
pub const WORKER_ID_MAX_BYTES: usize = 255;
/// `request_id` of a claim: a UUID in every spelling fits; it is stored on each live lease.
pub const REQUEST_ID_MAX_BYTES: usize = 64;
/// Payload of a job that gives none: so that a worker can always read an object.
pub const PAYLOAD_DEFAULT: &str = "{}";
/// Payload unless configured: a queue is not a file store; 32 of the largest still fit into one claim answer.
pub const PAYLOAD_MAX_BYTES: usize = 256 * KIB;
/// What `payload.max_bytes` may be set to: at least the default payload, and at most what leaves room for the other
/// fields in one request body.
pub const PAYLOAD_MAX_BYTES_RANGE: Range<i64> = Range { min: 2, max: 7 * 1024 * 1024 };
/// Nesting of a payload: the usual limit of JSON readers in the languages that workers are written in.
pub const PAYLOAD_MAX_DEPTH: usize = 128;
/// Result of a job: what somebody waits for, not what the work produced. Larger things belong into a store of their own.
pub const RESULT_MAX_BYTES: usize = 64 * KIB;
/// Checkpoint: a cursor, not the data; it is rewritten while the job runs.
pub const CHECKPOINT_MAX_BYTES: usize = 64 * KIB;
/// Error text: a stack trace of some 150 lines. Kept for each attempt, so 100 of them still fit into one answer.
pub const ERROR_MAX_BYTES: usize = 16 * KIB;
/// Message of a progress report: a line for people.
pub const PROGRESS_MESSAGE_MAX_BYTES: usize = KIB;

// ---- Retries and losses ----

/// Retries allowed. 1,000 with the default back-off take up to six weeks; more is a schedule, not a retry.
pub const MAX_RETRIES: Range<u32> = Range { min: 0, max: 1_000 };
/// Retries of a job that names none: outlasts a restart of whatever the job calls.
pub const MAX_RETRIES_DEFAULT: u32 = 3;
/// Lease losses that end a job; 0 and 1 both mean never to requeue after a loss. A job that took 100 workers with it is
/// not unlucky.
pub const MAX_LEASE_LOSSES: Range<u32> = Range { min: 0, max: 100 };
/// Lease losses that end a job that names none: three deploys or dead machines are borne, the fourth is no accident.
pub const MAX_LEASE_LOSSES_DEFAULT: u32 = 4;
/// Delay before the first retry: long enough for a restart, short enough that nobody notices.
pub const RETRY_BASE_DEFAULT_MS: i64 = 5 * SECOND_MS;
/// Growth of the delay: doubling.
pub const RETRY_FACTOR_DEFAULT: f64 = 2.0;
/// Smallest growth. Below 1 delays would shrink, and a failing dependency would be called ever more often.
pub const RETRY_FACTOR_MIN: f64 = 1.0;
/// Largest growth: one step from a millisecond to a quarter of an hour. Beyond, the cap is what is meant.
pub const RETRY_FACTOR_MAX: f64 = 1_000_000.0;
/// Longest back-off unless configured: an outage that is over is noticed within the hour.
pub const RETRY_CAP_DEFAULT_MS: i64 = HOUR_MS;
/// Base and cap of a back-off: a wait that ends beyond it would be a job that never runs.
pub const RETRY_DELAY_MS: Range<i64> = Range { min: 0, max: DELAY_MAX_MS };
/// Longest wait after the first lost lease: spreads the jobs of a dead machine without making anybody wait.
pub const FIRST_LOSS_DELAY_MAX_MS: i64 = SECOND_MS;
/// How long a worker that released a job is passed over for it, if another can take it: longer than the usual poll.
pub const RELEASE_AVOID_MS: i64 = 30 * SECOND_MS;

// ---- Times ----

/// Longest delay: ten years. Further ahead is a slip of units (milliseconds given as seconds), not a plan.
pub const DELAY_MAX_MS: i64 = 10 * YEAR_MS;
/// Delays: of an enqueue, of a release, `retry_after`.
pub const DELAY_MS: Range<i64> = Range { min: 0, max: DELAY_MAX_MS };
/// Maximum age. 0 would be a job that can never run.
pub const MAX_AGE_MS: Range<i64> = Range { min: 1, max: DELAY_MAX_MS };
/// Lease length: a second is the least that survives a slow network; a day is the most that a dead worker may hold a job.
pub const LEASE_MS: Range<i64> = Range { min: SECOND_MS, max: DAY_MS };
/// Lease of a claim that names none: the simplest worker sends no heartbeat, and most jobs take less than 5 minutes.
pub const LEASE_DEFAULT_MS: i64 = 300 * SECOND_MS;
/// Lease that our SDKs ask for: they send heartbeats, so a dead worker is noticed within a minute.
pub const LEASE_SDK_MS: i64 = 60 * SECOND_MS;
/// Heartbeats per lease length that workers are advised to send: two may be lost before the lease is.
pub const HEARTBEATS_PER_LEASE: i64 = 3;
/// Time limit of an attempt. None by default, since long work that sends heartbeats is legitimate.
pub const TIMEOUT_MS: Range<i64> = Range { min: 1, max: DELAY_MAX_MS };
/// How long an idempotency key holds after the job's end unless given: longer than any producer retries.
pub const DEFAULT_TTL_MS: i64 = 30 * DAY_MS;
/// `idempotency_ttl`: 0 holds until the end of the job and no longer.
pub const TTL_MS: Range<i64> = Range { min: 0, max: DELAY_MAX_MS };
/// How long a claim, or a look at a job, may wait. Proxies commonly cut what is silent for longer, and asking again is
/// cheap.
pub const WAIT_MAX_MS: i64 = 60 * SECOND_MS;

// ---- Limits of jobs ----

/// Limits that one job keeps to: its own dependency and one that it shares, such as an account. Each is looked at by each
/// claim that meets it.
pub const LIMITS_PER_JOB: usize = 2;
/// Partition of a limit, after the colon: a UUID or a host name fits; each is a row and a place in memory.
pub const PARTITION_MAX_BYTES: usize = 128;
/// `max_running` of a limit. 0 would be a pause that nobody sees; more than a million live leases do not fit one server.
pub const LIMIT_RUNNING: Range<u32> = Range { min: 1, max: 1_000_000 };
/// Starts within the period of a rate. 0 would be a pause that nobody sees.
pub const RATE_COUNT: Range<u32> = Range { min: 1, max: 1_000_000 };
/// Period of a rate: below 10 ms the clock's milliseconds decide more than the rate; quotas by the day exist, and what is
/// longer would be kept for longer than anybody remembers it.
pub const RATE_PER_MS: Range<i64> = Range { min: 10, max: DAY_MS };
/// How long a worker may close a limit: until a quota by the day comes back. Longer is for an operator to decide.
pub const THROTTLE_MS: Range<i64> = Range { min: 1, max: DAY_MS };
/// Partitions of a limit that are shown with it; more only repeat themselves.
pub const LIMIT_USES_SHOWN: usize = 100;

// ---- Housekeeping ----

/// Overdue attempts ended in one batch: a fleet that died must not make one commit last for seconds.
pub const OVERDUE_PER_BATCH: usize = 1_000;
/// Older jobs of an object that are brought up to a newer version at a time. All of them in its transaction, so that none is
/// handed out beside it; a piece at a time, so that their number does not show in memory.
pub const SUPERSEDED_AT_A_TIME: usize = 1_000;
/// How often overdue attempts are looked for without traffic: a lost lease waits a second longer at most.
pub const OVERDUE_EVERY_MS: i64 = SECOND_MS;
/// How often `served_until` is rewritten while somebody serves: a third of the gap that counts, at the price of one small commit a second.
pub const SERVED_UNTIL_EVERY_MS: i64 = SECOND_MS;
/// Gap in serving from which leases are moved: three missed rewrites, so that a slow commit is none.
pub const GAP_THRESHOLD_MS: i64 = 3 * SECOND_MS;
/// Most by which a gap moves leases. Workers that were alone for longer have given up.
pub const GAP_CAP_MS: i64 = HOUR_MS;
/// Attempts kept from the start of a job's history: how it began to fail.
pub const ATTEMPTS_FIRST: u32 = 10;
/// Attempts kept from the end of a job's history: how it fails now. With the first ones, 100 rows for any job.
pub const ATTEMPTS_LAST: u32 = 90;
/// How long completed jobs are kept unless configured: a week of looking back.
pub const RETENTION_COMPLETED_DEFAULT_MS: i64 = 7 * DAY_MS;
/// How long cancelled jobs are kept unless configured: somebody decided that, and may be asked about it.
pub const RETENTION_CANCELLED_DEFAULT_MS: i64 = 30 * DAY_MS;
/// What a retention time may be set to; 0 deletes at once.
pub const RETENTION_MS: Range<i64> = Range { min: 0, max: 10 * DELAY_MAX_MS };

// ---- Requests and answers ----

/// Body of a request: a thousand reports with results of 8 KiB.
pub const BODY_MAX_BYTES: usize = 8 * MIB;
/// Body of a bulk enqueue: 10,000 jobs of 6 KiB. What is larger is streamed.
pub const BULK_BODY_MAX_BYTES: usize = 64 * MIB;
/// Jobs of one bulk enqueue: one commit of a fraction of a second.
pub const BULK_JOBS_MAX: usize = 10_000;
/// Refused lines of a streamed enqueue that are named one by one: enough to see what is wrong with the file.
pub const STREAM_REFUSALS_MAX: usize = 1_000;
/// Bytes of the refused lines that are named one by one: 1,000 usual ones have half of it, and they stay in memory until
/// the stream has been read.
pub const STREAM_REFUSALS_MAX_BYTES: usize = MIB;
/// Errors of one refused line that are named: enough to see what is wrong, and a line that is wrong throughout does not
/// make an answer of 100 KiB.
pub const STREAM_LINE_ERRORS_MAX: usize = 10;
/// Bytes of a line besides the largest payload: all other fields at their limits, with every character escaped, fit four
/// times. A longer line is refused without being held in memory.
pub const STREAM_LINE_EXTRA_BYTES: usize = 64 * KIB;
/// Lines of a streamed enqueue that are stored together: enough that the disk does not count, few enough that a claim
/// which comes meanwhile waits some milliseconds.
pub const STREAM_BATCH_LINES: usize = 512;
/// Bytes of the lines that are stored together, since each stream holds up to four such batches: one that is read, one
/// that waits, one that is decoded, one that is stored.
pub const STREAM_BATCH_BYTES: usize = MIB / 2;
/// Streamed enqueues at the same time; further ones wait for their turn and are then refused. Each may hold some
/// megabytes, and more would only take the committer from each other.
pub const STREAMED_ENQUEUES_MAX: usize = 16;
/// Pieces of an answer with all results that wait for a client which reads slowly, since reading stops when they are full.
pub const STREAM_PIECES_MAX: usize = 4;
/// From this size on a piece of such an answer goes out; smaller ones would only cost more trips.
pub const STREAM_PIECE_BYTES: usize = 32 * KIB;
/// Reports of one bulk report: what a large worker finishes in a second; one commit.
pub const REPORTS_MAX: usize = 1_000;
/// Follow-ups of all entries of a bulk report: as many as a bulk enqueue may have, for the same reason.
pub const REPORTS_FOLLOW_UPS_MAX: usize = BULK_JOBS_MAX;
/// Jobs of one claim: what a large worker does in a few seconds; more would only sit in its memory under lease.
pub const CLAIM_JOBS: Range<u32> = Range { min: 1, max: 1_000 };
/// Bytes of one claim answer: what a worker's client reads without trouble. One job is always given, however large.
pub const CLAIM_BUDGET_BYTES: usize = 8 * MIB;
/// Effects of one job: what has more steps that must not be done twice is better several jobs. All are read with the job.
pub const EFFECTS_PER_JOB: usize = 100;
/// Name of an effect, since it is typed by people and stands in paths.
pub const EFFECT_NAME_MAX_BYTES: usize = 64;
/// Key of an effect, if the worker brings its own: as long as an idempotency key, because it often is one.
pub const EFFECT_KEY_MAX_BYTES: usize = KEY_MAX_BYTES;
/// Result of an effect: an id and what is needed of an answer; the whole answer belongs where it came from.
pub const EFFECT_RESULT_MAX_BYTES: usize = RESULT_MAX_BYTES;
/// Jobs that one `complete` may enqueue: they are written in the transaction of the report, which everybody else waits for.
pub const FOLLOW_UPS_MAX: usize = 1_000;
/// Bytes of the jobs that one `complete` may enqueue: they are written in the transaction of the report.
pub const FOLLOW_UPS_MAX_BYTES: usize = MIB;
/// Rows of a list page unless asked otherwise.
pub const LIST_PAGE_DEFAULT: u32 = 100;
/// Rows of a list page: an answer of about a megabyte.
pub const LIST_PAGE: Range<u32> = Range { min: 1, max: 1_000 };
/// Up to this place the position among the ready jobs is counted exactly; beyond it "more than" is as good.
pub const POSITION_EXACT_MAX: u32 = 1_000;

// ---- The committer ----

/// Commands that wait for the committer before further ones are refused with 503: some seconds of work.
pub const INBOX_COMMANDS: usize = 20_000;
/// Commands of one batch: more would make the first of them wait longer than a commit takes.
pub const BATCH_COMMANDS: usize = 1_024;
/// Bytes of payloads of one batch, so that memory and log grow by a bounded step. One command is always taken.
pub const BATCH_BYTES: usize = 16 * MIB;
/// Claims that wait for a job at the same time; beyond it a claim is answered at once, empty.
pub const PARKED_CLAIMS_MAX: usize = 20_000;
/// Lanes (queue, type, limits, fair key) in all: they are kept in memory. Beyond it new partitions and fair keys share.
pub const LANES_MAX: usize = 100_000;
/// How many partitions and fair keys those beyond [`LANES_MAX`] share, because a hundredth of what is kept in memory anyway
/// spreads them well.
pub const SHARED_LANES: u16 = 1_024;
/// What the fields of a job besides its payload, error and checkpoint are reckoned at in a claim answer: they are mostly
/// names and times, and 1,000 of them leave seven eighths of the budget to the texts.
pub const CLAIM_JOB_FIELDS_BYTES: u64 = 1_024;
/// Every how manieth retention sweep looks at all rows instead of ending at the first that is too young: a clock that was
/// ahead for a while leaves rows that seem too young for a long time.
pub const RETENTION_FULL_SWEEP_EVERY: u64 = 600;
/// What a job that is handed out is reckoned at when a batch is put together: half of the largest payload unless
/// configured, so that 128 single claims share a commit and their payloads stay within [`BATCH_BYTES`].
pub const JOB_WEIGHT_BYTES: usize = 128 * KIB;
/// What a row that is written is reckoned at when a batch is put together: 16,384 of them are a tenth of a second.
pub const ROW_WEIGHT_BYTES: usize = KIB;
/// Rows that one retention run looks at: a few milliseconds.
pub const RETENTION_SCAN_ROWS: usize = 5_000;
/// Rows that one retention run deletes: less than a commit's worth.
pub const RETENTION_BATCH_ROWS: usize = 500;
/// Workers that a node remembers for the list of workers; the longest unseen are forgotten first.
pub const WORKERS_REMEMBERED: usize = 10_000;
/// A worker that was not seen for this long is forgotten, so that names made of process ids do not pile up.
pub const WORKER_FORGOTTEN_AFTER_MS: i64 = DAY_MS;
/// Jobs that a worker released and is not given again while others wait, per worker: a hint, so the oldest may go.
pub const RELEASES_REMEMBERED: usize = 100;
/// Waits for the end of a job (`GET /jobs/{id}?wait_seconds=`) at the same time: more than connections are served.
pub const WATCHES_MAX: usize = 20_000;
/// A difference between wall clock and monotonic clock that counts as a step of the wall clock; slewing by NTP stays far
/// below it.
pub const CLOCK_STEP_MS: i64 = 500;
/// Reasons for which one queue may be paused at the same time: they stand in its row and in every answer about it, and a
/// person has to lift each.
pub const PAUSE_REASONS_MAX: usize = 20;
/// `max_running` of a queue. None at all is what `pause` is for, which says why.
pub const QUEUE_MAX_RUNNING: Range<u32> = Range { min: 1, max: 1_000_000 };
/// `max_depth` of a queue. None at all is what `drain` is for, which says why.
pub const QUEUE_MAX_DEPTH: Range<i64> = Range { min: 1, max: 1_000_000_000 };
/// A queue that no fitting worker has asked for this long counts as unserved: longer than the longest wait of a claim, so
/// that a worker which waits quietly is not mistaken for none.
pub const NO_WORKER_AFTER_MS: i64 = WAIT_MAX_MS + 30 * SECOND_MS;

// ---- The HTTP server ----

/// API tokens of a store: every call looks at each, and a person can look through them.
pub const TOKENS_MAX: usize = 1_000;
/// Patterns of queues, and of types, that a token names: every job of a list is held against them.
pub const TOKEN_PATTERNS_MAX: usize = 100;
/// Reasons, notes and owners: a paragraph for people, shown in every line of a list.
pub const TEXT_MAX_BYTES: usize = KIB;
/// Queues or types that one claim names: more than a worker knows how to do; each is looked up for each claim.
pub const CLAIM_NAMES_MAX: usize = 100;
/// Connections at the same time; further ones wait in the system's queue. Each costs some 20 KiB, so this many stay far
/// below the memory of a small machine.
pub const CONNECTIONS_MAX: usize = 10_000;
/// File descriptors that connections leave to the store, the log and the runtime: since a store that cannot open its
/// files fails worse than a connection that has to wait.
pub const FILES_RESERVED: usize = 128;
/// How long the head of a request may take, and how long a connection may be idle before it: longer than the 90 s after
/// which usual client pools (Go, Rust) drop an idle connection, so that it is the client who closes.
pub const HEAD_READ_MS: i64 = 95 * SECOND_MS;
/// A connection that has sent no request after this is closed, since nothing else ends one that says nothing at all.
pub const FIRST_REQUEST_MS: i64 = 30 * SECOND_MS;
/// How long the handshake of TLS may take: some round trips over a bad line, and no longer, since until then nobody knows who
/// it is.
pub const HANDSHAKE_MS: i64 = 10 * SECOND_MS;
/// Handshakes under way at the same time; for one more the oldest is given up. Enough for all workers of a site that come
/// back together, and few enough that those who open connections and say nothing never take the places of those who are in.
pub const HANDSHAKES_MAX: usize = 2_000;
/// A file of certificates or a key: a long chain has some 10 KiB. More is another file, named by mistake.
pub const TLS_FILE_MAX_BYTES: usize = MIB;
/// Head of a request: every cookie and trace header fits; each connection may hold this much.
pub const HEAD_MAX_BYTES: usize = 64 * KIB;
/// Longest pause within a body: otherwise a client that has died in the middle would keep its share of the memory.
pub const BODY_PAUSE_MS: i64 = 15 * SECOND_MS;
/// Longest time for a whole body: the largest one passes at half a megabyte a second.
pub const BODY_READ_MS: i64 = 120 * SECOND_MS;
/// Up to this size a body counts as small: every call of a worker does. Small ones have a room of their own, so that a
/// heartbeat does not wait behind bulk enqueues.
pub const SMALL_BODY_BYTES: usize = 64 * KIB;
/// Bytes of small bodies being read or worked on at the same time: 512 of the largest, many thousands of usual ones.
pub const SMALL_BODIES_IN_FLIGHT_BYTES: usize = 32 * MIB;
/// Bytes of large bodies being read or worked on at the same time: two of the largest. With what is made of them while
/// they are worked on, memory stays below four times this.
pub const BODIES_IN_FLIGHT_BYTES: usize = 2 * BULK_BODY_MAX_BYTES;
/// How long a request waits for room among the bodies in flight, or for a turn to read, before it is answered with 503:
/// less than the patience of usual clients, so that they hear it.
pub const ADMISSION_MS: i64 = 10 * SECOND_MS;
/// Requests at the same time on one HTTP/2 connection: a large worker fits, and no client holds all parked claims.
pub const STREAMS_MAX: u32 = 250;
/// Longest time in which a client takes none of its answer: otherwise the answer stays in memory as long as it likes.
pub const WRITE_PAUSE_MS: i64 = 60 * SECOND_MS;
/// Reads of the store at the same time: more would only wait for each other on the usual machine.
pub const READS_AT_ONCE: usize = 8;
/// Error text in lists and bulk answers: enough to tell one failure from another. The whole text is shown with the job
/// itself; without this a page of failed jobs could have 16 MiB.
pub const LIST_ERROR_MAX_BYTES: usize = KIB;
/// After an empty claim that did not wait: seconds until the next is advised. More would be the delay of a job that is
/// enqueued meanwhile; who wants none asks with `wait_seconds`.
pub const CLAIM_AGAIN_MAX_S: i64 = 5;
/// Jobs of a worker that the list of workers names one by one; more only repeat themselves.
pub const WORKER_JOBS_SHOWN: usize = 100;
/// Pages of failed jobs that one page of the review list looks through for its filters, so that a filter which fits
/// nothing costs a bounded scan.
pub const REVIEW_SCAN_PAGES: usize = 10;
/// Threads for what takes long besides reads (decoding and encoding of large bodies): more would only take the processor
/// from each other.
pub const BLOCKING_THREADS: usize = 32;
/// How long a shutdown waits for requests that are under way: less than the 30 s after which process managers kill.
pub const SHUTDOWN_MS: i64 = 10 * SECOND_MS;
/// The committer rewrites `served_until` each second; if it has not committed for this long, it stands still and
/// `/readyz` says so. Longer than a slow disk takes, so that it does not flutter.
pub const STANDSTILL_MS: i64 = 5 * SECOND_MS;
/// How long `/metrics` waits for what only the committer knows: less than the patience of a scraper.
pub const METRICS_PATIENCE_MS: i64 = SECOND_MS;
/// Types and queues with series of their own in `/metrics`; the others are summed up as `other`, since names that are
/// made up at run time would otherwise grow it without end.
pub const METRIC_NAMES_MAX: usize = 100;

// ---- Alerts ----

/// From where on each kind of alert rings unless said otherwise, in its unit. Ages: longer than a deployment, a short outage
/// or a long job takes, so that who is woken has something to do. Rates: the half is no accident; nine repeated of ten are a
/// storm. One job in review is one that waits for a person. A log of half a gigabyte is eight times the longest that is left of it when nobody reads.
pub const ALERT_DEFAULTS: [(Kind, i64); Kind::ALL.len()] = [
    (Kind::OldestReadyAge, 15 * MINUTE_MS),
    (Kind::NoWorker, 5 * MINUTE_MS),
    (Kind::NoSuccess, HOUR_MS),
    (Kind::FailureRate, 500),
    (Kind::RetryRate, 900),
    (Kind::ReviewNew, 1),
    (Kind::ReviewAge, DAY_MS),
    (Kind::RunTimeP95, HOUR_MS),
    (Kind::Store, 512 * 1024 * 1024),
    (Kind::ReleaseLoop, 100),
];
/// Thresholds that are ages: below a second everything rings; above a month nobody waits for it.
pub const ALERT_AGE_MS: Range<i64> = Range { min: SECOND_MS, max: 30 * DAY_MS };
/// Thresholds that are counts: none at all would ring for ever.
pub const ALERT_COUNT: Range<i64> = Range { min: 1, max: 1_000_000_000 };
/// The threshold of the write-ahead log in bytes: less than a megabyte is what every batch writes, more than a terabyte is
/// no log.
pub const ALERT_WAL_BYTES: Range<i64> = Range { min: 1_000_000, max: 1_000_000_000_000 };
/// How far back rates look: long enough for a rate, short enough that what was mended counts as mended soon.
pub const ALERT_WINDOW_DEFAULT_MS: i64 = 10 * MINUTE_MS;
/// Bounds of that: samples of the window are kept in memory.
pub const ALERT_WINDOW_MS: Range<i64> = Range { min: SECOND_MS, max: DAY_MS };
/// Attempts without which there is no rate: of 20, a chance half is rare.
pub const ALERT_ATTEMPTS_MIN_DEFAULT: i64 = 20;
/// How long it must have been calm: a worker that is started anew and dies again within it makes one alert, not two.
pub const ALERT_CALM_DEFAULT_MS: i64 = 2 * MINUTE_MS;
/// Bounds of that; none at all closes at the first calm look.
pub const ALERT_CALM_MS: Range<i64> = Range { min: 0, max: DAY_MS };
/// How often it is looked: much shorter than the shortest threshold that makes sense, and a look costs milliseconds.
pub const ALERT_EVERY_DEFAULT_MS: i64 = 5 * SECOND_MS;
/// Bounds of that: more often costs more than it tells, and a minute later is late.
pub const ALERT_EVERY_MS: Range<i64> = Range { min: 100, max: 60 * SECOND_MS };
/// How long `alerts.command` may run: a mail goes out in seconds.
pub const ALERT_COMMAND_DEFAULT_MS: i64 = 30 * SECOND_MS;
/// Bounds of that: while it runs, the next alert waits for it.
pub const ALERT_COMMAND_MS: Range<i64> = Range { min: 100, max: 10 * MINUTE_MS };
/// How long an answer of `alerts.webhook` and `alerts.heartbeat_url` may take: services answer in less than a second.
pub const ALERT_WEBHOOK_DEFAULT_MS: i64 = 10 * SECOND_MS;
/// Bounds of that: while it is awaited, the next alert waits for it.
pub const ALERT_WEBHOOK_MS: Range<i64> = Range { min: 100, max: MINUTE_MS };
/// How often `alerts.heartbeat_url` is called: usual watchers count in minutes.
pub const ALERT_HEARTBEAT_DEFAULT_MS: i64 = MINUTE_MS;
/// Bounds of that: more often would be load for somebody else.
pub const ALERT_HEARTBEAT_MS: Range<i64> = Range { min: SECOND_MS, max: HOUR_MS };
/// How often the row of an alert that goes on is written: people read it to the minute.
pub const ALERT_SEEN_EVERY_MS: i64 = 30 * SECOND_MS;
/// Alerts that are open at the same time: nobody reads more, and the first of them say what is wrong.
pub const ALERTS_OPEN_MAX: usize = 1_000;
/// Alerts that are kept; of closed ones the oldest go first.
pub const ALERTS_KEPT_MAX: usize = 10_000;
/// Samples of a window in memory, so that its length does not show there.
pub const ALERT_SAMPLES_MAX: usize = 60;
/// Failed jobs that are looked at for the age of the oldest in review: with more of them somebody is told anyway.
pub const ALERT_REVIEW_SCAN: usize = 1_000;
