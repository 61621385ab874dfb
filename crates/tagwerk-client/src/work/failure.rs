//! How an attempt ends that does not complete its job.

use std::fmt::{self, Display};
use std::time::Duration;

use tagwerk_api::ErrorClass;
use tagwerk_api::request::Throttle;

use crate::task::seconds;

/// Why a job was not completed, and what follows from it. Any error becomes a *transient* one with `?`.
///
/// ```
/// # use tagwerk_client::Failure;
/// fn read(path: &str) -> Result<String, Failure> {
///     if path.is_empty() {
///         return Err(Failure::permanent("no path"));
///     }
///     Ok(std::fs::read_to_string(path)?)
/// }
/// # assert!(read("").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub(crate) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Failed {
        class: ErrorClass,
        error: String,
        retry_after: Option<Duration>,
        throttle: Option<(String, Duration)>,
        undone: bool,
    },
    Released {
        delay: Duration,
        reason: String,
    },
}

impl Failure {
    /// May succeed later: it is retried while retries are left.
    pub fn transient(error: impl Display) -> Self {
        Self::failed(ErrorClass::Transient, error)
    }

    /// Repeating is pointless: it goes to review.
    pub fn permanent(error: impl Display) -> Self {
        Self::failed(ErrorClass::Permanent, error)
    }

    /// Nobody knows whether it was done: the next attempt is told to look first ([`Context::verify`](super::Context::verify)).
    pub fn unknown(error: impl Display) -> Self {
        Self::failed(ErrorClass::Unknown, error)
    }

    /// Not begun: the job is given back, which counts as no attempt.
    pub fn release(delay: Duration, reason: impl Display) -> Self {
        Self(Kind::Released { delay, reason: reason.to_string() })
    }

    fn failed(class: ErrorClass, error: impl Display) -> Self {
        Self(Kind::Failed {
            class,
            error: error.to_string(),
            retry_after: None,
            throttle: None,
            undone: false,
        })
    }

    /// Not retried earlier than this.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        match &mut self.0 {
            Kind::Failed { retry_after, .. } => *retry_after = Some(wait),
            Kind::Released { delay, .. } => *delay = wait,
        }
        self
    }

    /// Nobody starts a job under this limit for so long: the other side asks for less. Means nothing for a release.
    #[must_use]
    pub fn throttle(mut self, limit: impl Into<String>, time: Duration) -> Self {
        if let Kind::Failed { throttle, .. } = &mut self.0 {
            *throttle = Some((limit.into(), time));
        }
        self
    }
}

impl Failure {
    /// For what an [`Effect`](super::Effect) comes to: it certainly did not happen, so the next attempt need not look it up. Without
    /// this a failure of an effect leaves it in doubt. A release says it too.
    #[must_use]
    pub fn did_not_happen(mut self) -> Self {
        if let Kind::Failed { undone, .. } = &mut self.0 {
            *undone = true;
        }
        self
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Failed { class, error, .. } => write!(f, "{}: {error}", class.name()),
            Kind::Released { reason, .. } => write!(f, "given back: {reason}"),
        }
    }
}

/// With everything that it says about its causes. (So [`Failure`] cannot be an error itself.)
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut inner = error.source();
        while let Some(source) = inner {
            let more = source.to_string();
            // Many repeat their cause in their own words.
            if !text.contains(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            inner = source.source();
        }
        Self::transient(text)
    }
}

/// A limit to be held back, as the interface has it.
pub(crate) fn throttle(asked: Option<(String, Duration)>) -> Option<Throttle> {
    asked.map(|(limit, time)| Throttle { limit, for_seconds: seconds(time) })
}
