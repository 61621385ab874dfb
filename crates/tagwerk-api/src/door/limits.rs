//! The limits that the door applies. The numbers and their reasons stand in the core's file of limits, which this
//! crate does not see; the binary copies them into this.

use std::ops::RangeInclusive;

/// What the door takes. Sizes in bytes of UTF-8, times in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct DoorLimits {
    /// Largest job id and version: 2^53 - 1.
    pub id_max: i64,
    /// Name of a queue.
    pub name_max_bytes: usize,
    /// Job type.
    pub type_max_bytes: usize,
    /// Idempotency key, subject kind and id, correlation id.
    pub key_max_bytes: usize,
    /// `traceparent`.
    pub traceparent_max_bytes: usize,
    /// `worker_id`.
    pub worker_id_max_bytes: usize,
    /// `request_id` of a claim.
    pub request_id_max_bytes: usize,
    /// Reasons, notes and owners: free text for people.
    pub text_max_bytes: usize,
    /// Payload.
    pub payload_max_bytes: usize,
    /// Nesting of payload, result and checkpoint.
    pub payload_max_depth: usize,
    /// Result.
    pub result_max_bytes: usize,
    /// Name of an effect.
    pub effect_name_max_bytes: usize,
    /// Effects of one job.
    pub effects_per_job: usize,
    /// Checkpoint.
    pub checkpoint_max_bytes: usize,
    /// Message of a progress report.
    pub progress_message_max_bytes: usize,
    /// Highest priority.
    pub priority_max: u8,
    /// `max_retries`
    pub max_retries: RangeInclusive<u32>,
    /// `max_lease_losses`
    pub max_lease_losses: RangeInclusive<u32>,
    /// `retry.factor`
    pub retry_factor: RangeInclusive<f64>,
    /// `retry.base_seconds`, `retry.cap_seconds`
    pub retry_delay_ms: RangeInclusive<i64>,
    /// `delay_seconds`, `retry_after_seconds`
    pub delay_ms: RangeInclusive<i64>,
    /// `max_age_seconds`
    pub max_age_ms: RangeInclusive<i64>,
    /// `lease_seconds`
    pub lease_ms: RangeInclusive<i64>,
    /// `timeout_seconds`
    pub timeout_ms: RangeInclusive<i64>,
    /// `idempotency_ttl_seconds`
    pub ttl_ms: RangeInclusive<i64>,
    /// `wait_seconds`
    pub wait_max_ms: i64,
    /// Jobs of a bulk enqueue.
    pub bulk_jobs_max: usize,
    /// Reports of a bulk report, leases of a bulk heartbeat.
    pub reports_max: usize,
    /// Follow-ups of one completed job.
    pub follow_ups_max: usize,
    /// The same in bytes, as they are sent.
    pub follow_ups_max_bytes: usize,
    /// Follow-ups of all entries of a bulk report.
    pub reports_follow_ups_max: usize,
    /// `max_jobs` of a claim.
    pub claim_jobs: RangeInclusive<u32>,
    /// Queues or types that one claim names.
    pub claim_names_max: usize,
    /// `max_running` of a queue.
    pub queue_max_running: RangeInclusive<u32>,
    /// `max_depth` of a queue.
    pub queue_max_depth: RangeInclusive<i64>,
    /// `limit` of a list.
    pub list_page: RangeInclusive<u32>,
    /// Limits of a job.
    pub limits_per_job: usize,
    /// Partition of a limit, after the colon.
    pub partition_max_bytes: usize,
    /// `max_running` of a limit.
    pub limit_running: RangeInclusive<u32>,
    /// `rate.count`
    pub rate_count: RangeInclusive<u32>,
    /// `rate.per_seconds`
    pub rate_per_ms: RangeInclusive<i64>,
    /// `throttle.for_seconds`
    pub throttle_ms: RangeInclusive<i64>,
}

impl DoorLimits {
    /// What a type may say of the payloads of its jobs: at least the one of a job that gives none, at most the server's.
    #[must_use]
    pub fn payload_sizes(&self) -> RangeInclusive<u32> {
        2..=u32::try_from(self.payload_max_bytes).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
impl DoorLimits {
    /// The numbers of the server, for tests.
    pub(crate) fn for_tests() -> Self {
        const DECADE_MS: i64 = 10 * 365 * 86_400_000;
        Self {
            id_max: (1 << 53) - 1,
            name_max_bytes: 64,
            type_max_bytes: 255,
            key_max_bytes: 255,
            traceparent_max_bytes: 255,
            worker_id_max_bytes: 255,
            request_id_max_bytes: 64,
            text_max_bytes: 1024,
            payload_max_bytes: 256 * 1024,
            payload_max_depth: 128,
            result_max_bytes: 64 * 1024,
            effect_name_max_bytes: 64,
            effects_per_job: 100,
            checkpoint_max_bytes: 64 * 1024,
            progress_message_max_bytes: 1024,
            priority_max: 100,
            max_retries: 0..=1000,
            max_lease_losses: 0..=100,
            retry_factor: 1.0..=1e6,
            retry_delay_ms: 0..=DECADE_MS,
            delay_ms: 0..=DECADE_MS,
            max_age_ms: 1..=DECADE_MS,
            lease_ms: 1000..=86_400_000,
            timeout_ms: 1..=DECADE_MS,
            ttl_ms: 0..=DECADE_MS,
            wait_max_ms: 60_000,
            bulk_jobs_max: 10_000,
            reports_max: 1000,
            follow_ups_max: 1000,
            follow_ups_max_bytes: 1024 * 1024,
            reports_follow_ups_max: 10_000,
            claim_jobs: 1..=1000,
            claim_names_max: 100,
            queue_max_running: 1..=1_000_000,
            queue_max_depth: 1..=1_000_000_000,
            list_page: 1..=1000,
            limits_per_job: 2,
            partition_max_bytes: 128,
            limit_running: 1..=1_000_000,
            rate_count: 1..=1_000_000,
            rate_per_ms: 10..=86_400_000,
            throttle_ms: 1..=86_400_000,
        }
    }
}
