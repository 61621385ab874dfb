//! What the server's operator may set: the last level of every default.

use tagwerk_core::{RetryPolicy, limits, retention};

/// Settings of the server. Job, type and claim come before these.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Retries allowed.
    pub max_retries: u32,
    /// Lease losses that end a job.
    pub max_lease_losses: u32,
    /// Back-off.
    pub retry: RetryPolicy,
    /// Lease length in milliseconds.
    pub lease_ms: i64,
    /// Life of idempotency keys after the end of their job in milliseconds.
    pub ttl_ms: i64,
    /// Whether reports without a lease token are refused.
    pub lease_token: LeaseToken,
    /// Whether jobs of a type without settings are taken.
    pub unknown_types: UnknownTypes,
    /// How long finished jobs are kept.
    pub retention: retention::Policy,
    /// What becomes of a job that names a limit which there is not.
    pub unknown_limits: UnknownLimits,
    /// Commands that may wait for the committer before further ones are refused.
    pub inbox: usize,
}

/// Whether reports need the lease token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseToken {
    /// A report without it is accepted where it can be nobody else's.
    Optional,
    /// A report without it is refused.
    Required,
}

/// What becomes of a job whose type has no settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownTypes {
    /// It is taken; a type needs no settings.
    Accept,
    /// It is refused: a misspelt type would wait for a worker that never comes.
    Refuse,
}

/// What becomes of a job that names a limit which there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownLimits {
    /// It is refused: a misspelt name would bound nothing.
    Refuse,
    /// The limit is made, without bounds; an operator gives it some later.
    Create,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_retries: limits::MAX_RETRIES_DEFAULT,
            max_lease_losses: limits::MAX_LEASE_LOSSES_DEFAULT,
            retry: RetryPolicy::default(),
            lease_ms: limits::LEASE_DEFAULT_MS,
            ttl_ms: limits::DEFAULT_TTL_MS,
            lease_token: LeaseToken::Optional,
            unknown_types: UnknownTypes::Accept,
            retention: retention::Policy::default(),
            unknown_limits: UnknownLimits::Refuse,
            inbox: limits::INBOX_COMMANDS,
        }
    }
}
