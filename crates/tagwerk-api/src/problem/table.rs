//! The table of problem codes: what each means on the wire and what to do about it.

/// Declares the codes and their table in one place.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $status:literal $retry:ident $title:literal, $advice:literal;)+) => {
        /// Stable name of a kind of problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* #[doc = concat!("`", $name, "`: ", $title)] $variant,)+
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name on the wire, kebab-case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// Whether the same request may be sent again as it is.
            #[must_use]
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => codes!(@retry $retry),)+ }
            }

            /// The kind of problem in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// What to do about it.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)+ }
            }

            /// The code with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
    (@retry again) => { true };
    (@retry never) => { false };
}

codes! {
    InvalidJson = "invalid-json" 400 never "Not readable JSON",
        "Send one JSON object in UTF-8 without byte order mark; the detail names the place.";
    InvalidRequest = "invalid-request" 422 never "Invalid request",
        "Correct what errors lists and send it again.";
    InvalidPrecondition = "invalid-precondition" 422 never "Invalid If-Match",
        "Send If-Match with the job's version as a whole number, such as If-Match: \"7\", or leave it out.";
    UnsupportedMediaType = "unsupported-media-type" 415 never "Unsupported media type",
        "Send JSON and say so; with curl: -H 'Content-Type: application/json'.";
    BodyTooLarge = "body-too-large" 413 never "Body too large",
        "Send less in one request; many jobs go in several POST /jobs/bulk.";
    PayloadTooLarge = "payload-too-large" 422 never "Payload too large",
        "Keep large data elsewhere and put a reference to it into the payload.";
    ResultTooLarge = "result-too-large" 422 never "Result too large",
        "The lease lives on. Keep the large result elsewhere and complete with a reference to it.";
    CheckpointTooLarge = "checkpoint-too-large" 422 never "Checkpoint too large",
        "The lease lives on. Keep large state elsewhere and store a reference to it.";
    NotFound = "not-found" 404 never "No such path",
        "GET /openapi.json lists every path.";
    JobNotFound = "job-not-found" 404 never "No such job",
        "Check the id. Completed and cancelled jobs are deleted when their retention ends.";
    TypeNotFound = "type-not-found" 404 never "No settings for this type",
        "Types without settings use the server's defaults; PUT /types/{type} makes some.";
    UnknownType = "unknown-type" 422 never "Unknown type",
        "The server takes only types with settings (types.strict). Correct the name, or make it known: PUT /types/{type}.";
    QueueNotFound = "queue-not-found" 404 never "No such queue",
        "Nobody has used this queue, and nothing is said about it; the first job or PUT /queues/{queue} makes it.";
    UnknownLimit = "unknown-limit" 422 never "Unknown limit",
        "A job names a limit that there is not. Correct the name, make it with PUT /limits/{name}, or set limits.create_on_use.";
    LimitNotFound = "limit-not-found" 404 never "No such limit",
        "PUT /limits/{name} makes one; GET /limits lists those that there are.";
    LimitInUse = "limit-in-use" 409 never "Jobs name this limit",
        "Jobs that have not ended still name it, as many as in_use says, or the settings of types, which in_use names. Raise its bounds, or delete it when nothing names it any more.";
    AlertNotFound = "alert-not-found" 404 never "No such alert",
        "GET /alerts lists those that there are; of closed ones the oldest are deleted.";
    MethodNotAllowed = "method-not-allowed" 405 never "Method not allowed",
        "Use a method that the header Allow lists.";
    RequestTimeout = "request-timeout" 408 again "Request too slow",
        "The request did not arrive in time; nothing was done. Send it again.";
    UnknownHost = "unknown-host" 421 never "Unknown host",
        "Use 127.0.0.1, [::1] or localhost, or list the name in server.hosts.";
    TlsRequired = "tls-required" 400 never "HTTP without TLS",
        "This port speaks TLS only: use https://. What came with this request, a token too, went over the network in the clear; if others may have read it, revoke the token.";
    CrossOrigin = "cross-origin" 403 never "Request from a foreign page",
        "Browsers may change things only from the server's own pages; call the API from a server or a script.";
    ProxiedWithoutToken = "proxied-without-token" 403 never "Behind a proxy without tokens",
        "Without API tokens the server answers direct local requests only; call it without the proxy.";
    Unauthorized = "unauthorized" 401 never "API token needed",
        "Send a token that is valid here: Authorization: Bearer tw_…; tagwerk token create makes one.";
    TokenInUrl = "token-in-url" 401 never "Token in the URL",
        "URLs end up in logs: revoke this token, make another, and send it in the header Authorization: Bearer tw_….";
    Forbidden = "forbidden" 403 never "Not with this token",
        "The token lacks the scope, queue, type or priority that the detail names; use another one.";
    Duplicate = "duplicate" 409 never "Key already used",
        "The job of this idempotency key is in job; on_duplicate: existing answers with it instead.";
    IdempotencyKeyReused = "idempotency-key-reused" 422 never "Key used for another job",
        "The same key came with other content; use a new key for a new job. The first job is in job.";
    IdempotencyKeyConflict = "idempotency-key-conflict" 422 never "Two different keys",
        "Give the key in the header Idempotency-Key or in idempotency_key, or the same in both.";
    IdempotencyKeyHeld = "idempotency-key-held" 409 never "Key held by another job",
        "Another job has taken this job's key since; it is in job. Discard this one or wait for that one.";
    IdempotencyKeyTaken = "idempotency-key-taken" 409 never "Key taken",
        "A job that this token may not see has the key; use another key.";
    AtomicRefused = "atomic-refused" 424 never "Refused with its neighbours",
        "This item is good, but another one of the same atomic call was refused; nothing was stored.";
    LeaseLost = "lease-lost" 409 never "Lease lost",
        "Stop; begin nothing new. If may_report is true, the outcome can still be reported.";
    TimedOut = "timed-out" 409 never "Time limit reached",
        "Stop; begin nothing new. If may_report is true, the outcome can still be reported.";
    Cancelled = "cancelled" 409 never "Job cancelled",
        "Stop and drop the work.";
    Superseded = "superseded" 409 never "Superseded by a newer version",
        "A worker: stop and drop the work. An operator: retry with force if this one must run all the same.";
    NotRunning = "not-running" 409 never "Job not running",
        "Stop. Only a claimed job has a lease; claim it first.";
    AlreadyReported = "already-reported" 409 never "Already reported otherwise",
        "An earlier report of this lease counts (see counted); nothing was changed. Stop.";
    LeaseRequired = "lease-required" 409 never "Lease token needed",
        "Send lease from the claim answer: without it this call could be another attempt's.";
    EffectsOpen = "effects-open" 409 never "Effects not ended",
        "The lease lives on. Finish or abort the effects that the detail lists, then report again; or fail with class unknown.";
    EffectNotBegun = "effect-not-begun" 409 never "Effect not begun",
        "Nothing of this name was begun; check the name. Begin an effect before doing it.";
    EffectFinished = "effect-finished" 409 never "Effect already finished",
        "It happened, and the result that was stored first stands; nothing was changed.";
    TooManyEffects = "too-many-effects" 409 never "Too many effects",
        "The lease lives on. A job with so many steps is better several jobs; see enqueue of complete.";
    NotFailed = "not-failed" 409 never "Job not in review",
        "Only a failed job can be retried; look at its status.";
    NotHolding = "not-holding" 409 never "Job holds back nobody",
        "It has no ordering key, skips, or was unblocked before; nothing was changed.";
    UseDiscard = "use-discard" 409 never "Job is in review",
        "A failed job is taken out of review with discard.";
    UseCancel = "use-cancel" 409 never "Job not in review",
        "A job that has not ended is stopped with cancel.";
    AlreadyCompleted = "already-completed" 409 never "Job already completed",
        "A completed job stays completed; nothing was changed.";
    VersionChanged = "version-changed" 409 never "Job changed meanwhile",
        "Look at the job again, then repeat with its current_version if that is still right.";
    ReasonRequired = "reason-required" 409 never "Paused for several reasons",
        "Name the reason that is to be lifted; the detail lists them.";
    PauseNotFound = "pause-not-found" 409 never "Not paused for this reason",
        "The queue stays paused for other reasons; the detail lists them.";
    TooManyPauses = "too-many-pauses" 409 never "Paused for too many reasons",
        "Lift some of the reasons first; GET /queues/{queue} lists them.";
    QueueFull = "queue-full" 429 again "Queue full",
        "Nothing was stored. Send it again after Retry-After, when some of its jobs are done.";
    QueueDraining = "queue-draining" 503 again "Queue takes no new jobs",
        "Nothing was stored. An operator is draining this queue; send it again after Retry-After.";
    RateLimited = "rate-limited" 429 again "Too many requests",
        "Nothing was done. This token has used up its requests for now; send it again after Retry-After.";
    TooManyWaiting = "too-many-waiting" 429 again "Too many waiting claims",
        "Claim again after Retry-After, or without wait_seconds.";
    Overloaded = "overloaded" 503 again "Server overloaded",
        "Nothing was done. Send it again after Retry-After.";
    StoreBusy = "store-busy" 503 again "Store busy",
        "Nothing was done. Send it again after Retry-After.";
    StoreFull = "store-full" 503 again "Disk full",
        "Nothing was done. The operator must free disk space; then send it again.";
    StoreReadOnly = "store-read-only" 503 again "Store read-only",
        "Nothing was done. The operator must make the store writable; then send it again.";
    StoreDamaged = "store-damaged" 503 again "Store damaged",
        "Nothing was done. The operator must put the file back if it was moved away, else run tagwerk check --integrity and restore; then send it again.";
    JobDamaged = "job-damaged" 500 never "Job row damaged",
        "The row of this job cannot be read; other jobs are not affected. The operator must run tagwerk check.";
    Draining = "draining" 503 again "Server shutting down",
        "Nothing was done. Send it again after Retry-After.";
    OutcomeUnknown = "outcome-unknown" 503 never "Outcome unknown",
        "It may have been stored or not. Send it again only with an idempotency key, lease token or request_id.";
    InternalError = "internal-error" 500 never "Internal error",
        "A bug in the server, which has logged it. Look at the job before sending it again.";
}

impl Code {
    /// The URI that names this kind of problem in `type`.
    #[must_use]
    pub fn type_uri(self) -> String {
        format!("urn:tagwerk:problem:{}", self.name())
    }
}

/// The whole table as Markdown, for the documentation.
#[must_use]
pub fn markdown() -> String {
    let head = "| code | status | retryable | title | what to do |\n|---|---|---|---|---|\n";
    let rows = Code::ALL.iter().map(|code| {
        let again = if code.retryable() { "yes" } else { "no" };
        let (name, status, title) = (code.name(), code.status(), code.title());
        format!("| {name} | {status} | {again} | {title} | {} |\n", code.advice())
    });
    std::iter::once(head.to_owned()).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table is an interface: a change of it must be seen. To accept one, copy what the failure prints.
    #[test]
    fn the_table_is_the_committed_one() {
        let committed = include_str!("table.md");
        assert_eq!(markdown(), committed, "\n{}", markdown());
    }

    #[test]
    fn names_are_kebab_case_and_unique() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        for (code, name) in Code::ALL.iter().zip(&names) {
            assert_eq!(Code::from_name(name), Some(*code));
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        assert_eq!(Code::from_name("LeaseLost"), None);
    }

    #[test]
    fn every_503_and_429_may_be_sent_again_unless_its_outcome_is_unknown() {
        for code in Code::ALL {
            let again = matches!(code.status(), 408 | 429 | 503) && *code != Code::OutcomeUnknown;
            assert_eq!(code.retryable(), again, "{}", code.name());
        }
    }
}
