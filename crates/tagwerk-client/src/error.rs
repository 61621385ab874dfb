//! What can go wrong with a call, by what the caller does next.

use std::time::Duration;

use tagwerk_api::problem::{Code, Problem};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was sent: nobody listens there, or the name is unknown. Start the server or correct the address.
    #[error("cannot reach a server at {address}: {why}")]
    Connect {
        /// Where it was sought.
        address: String,
        /// The innermost reason.
        why: String,
        /// The whole chain.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing was sent: whoever answers there cannot prove to be the server, or does not speak TLS.
    #[error("no secure connection to {address}: {why}")]
    Untrusted {
        /// Where it was sought.
        address: String,
        /// What is wrong with it.
        why: String,
        /// The whole chain.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The certificates of authorities that were named cannot be used, or there are none. Nothing was sent.
    #[error("{0}")]
    Authorities(String),
    /// No answer came in time. The call may have been done or not: repeat it only if it is one that may be repeated.
    #[error("no answer from {address} within {} s; it may have been done or not", .after.as_secs_f64())]
    Timeout {
        /// Who was asked.
        address: String,
        /// How long we waited.
        after: Duration,
    },
    /// The connection broke before the answer was complete. The call may have been done or not.
    #[error("the connection to {address} broke ({why}); the call may have been done or not")]
    Broken {
        /// Who was asked.
        address: String,
        /// The innermost reason.
        why: String,
        /// The whole chain.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server refused the call, and says why and what to do.
    #[error("{problem}")]
    Problem {
        /// What the server says.
        problem: Box<Problem>,
        /// When to ask again.
        retry_after: Option<Duration>,
    },
    /// The answer is not one of a Tagwerk server: something else listens there, or it is of another version.
    #[error("{address} answered with status {status} and a body that is not Tagwerk's: {why}")]
    BadAnswer {
        /// Who was asked.
        address: String,
        /// The status.
        status: u16,
        /// What is wrong with it.
        why: String,
    },
    /// The API token has characters that no token has. Nothing was sent.
    #[error("the API token has characters that no token has; it looks like tw_ and 64 letters and digits")]
    BadToken,
    /// What was to be sent cannot be written as JSON.
    #[error("the request cannot be written as JSON: {0}")]
    Request(#[from] serde_json::Error),
}

impl Error {
    /// The problem, if the server refused the call.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } => Some(problem),
            _ => None,
        }
    }

    /// The problem's code, if this version knows it.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        self.problem().and_then(Problem::known_code)
    }

    /// The problem's HTTP status.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.problem().map(|problem| problem.status)
    }

    /// When the server wants to be asked again.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the call certainly changed nothing and may be sent again as it is.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. } => true,
            Self::Problem { problem, .. } => problem.retryable,
            _ => false,
        }
    }

    /// Whether nobody can tell if the call was done. A call that may be repeated is then repeated.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Broken { .. } => true,
            Self::Problem { .. } => self.code() == Some(Code::OutcomeUnknown),
            // A gateway that has lost its server.
            Self::BadAnswer { status, .. } => matches!(status, 502..=504),
            _ => false,
        }
    }

    /// Whether it is the way to the server that failed, not the call.
    #[must_use]
    pub const fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. }
                | Self::Untrusted { .. }
                | Self::Timeout { .. }
                | Self::Broken { .. }
                | Self::BadAnswer { .. }
        )
    }
}

/// The innermost reason of a chain, which says more than the outer ones: `Connection refused (os error 111)`.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
