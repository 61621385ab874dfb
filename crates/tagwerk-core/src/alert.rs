//! Alerts: when somebody is to be told that work stands still or goes wrong.
//!
//! Two pure steps. [`measure`] holds figures against thresholds and says of each thing that is watched whether it rings,
//! is calm or cannot be told. [`judge`] holds these readings against the alerts that are open and says which open and which
//! close. Guarantees: one thing has at most one open alert of a kind; a figure that swings around its threshold opens one
//! alert, not many, since it closes only when the figure has been well below for a while; what cannot be told (the server has
//! just been started) neither opens nor closes anything.
//!
//! Deliberately absent: where figures come from, rows, whom it is told.

mod judge;
mod measure;
mod rules;

pub use judge::{Change, Moment, Open, judge};
pub use measure::{
    Ended, Figures, QueueFigures, Reading, State, StoreFigures, TypeFigures, Unserved, measure,
};
pub use rules::{Rule, Rules, Thresholds};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A job of the queue could be handed out and has been waiting for long.
    OldestReadyAge,
    /// Jobs of the queue are ready or soon due, and no worker has asked for them, perhaps never.
    NoWorker,
    /// Attempts of the type end, but none has been completed for long.
    NoSuccess,
    /// Many attempts of the type fail.
    FailureRate,
    /// Many attempts of the type are repeated.
    RetryRate,
    /// Jobs of the type have come into review.
    ReviewNew,
    /// A job of the type has been in review for long.
    ReviewAge,
    /// Attempts of the type take long.
    RunTimeP95,
    /// The store cannot be written, or its log grows.
    Store,
    /// Workers give back jobs of the type again and again.
    ReleaseLoop,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Thousandths of a whole.
    PerMille,
    /// Things.
    Count,
    /// Bytes.
    Bytes,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::OldestReadyAge,
        Self::NoWorker,
        Self::NoSuccess,
        Self::FailureRate,
        Self::RetryRate,
        Self::ReviewNew,
        Self::ReviewAge,
        Self::RunTimeP95,
        Self::Store,
        Self::ReleaseLoop,
    ];

    /// Its name everywhere.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OldestReadyAge => "oldest_ready_age",
            Self::NoWorker => "no_worker",
            Self::NoSuccess => "no_success",
            Self::FailureRate => "failure_rate",
            Self::RetryRate => "retry_rate",
            Self::ReviewNew => "review_new",
            Self::ReviewAge => "review_age",
            Self::RunTimeP95 => "run_time_p95",
            Self::Store => "store",
            Self::ReleaseLoop => "release_loop",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What its figures count.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::OldestReadyAge | Self::NoWorker | Self::NoSuccess | Self::ReviewAge | Self::RunTimeP95 => {
                Unit::Ms
            }
            Self::FailureRate | Self::RetryRate => Unit::PerMille,
            Self::ReviewNew | Self::ReleaseLoop => Unit::Count,
            Self::Store => Unit::Bytes,
        }
    }
}

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The server and its store.
    Server,
    /// A queue.
    Queue(String),
    /// A type.
    Type(String),
}

impl Scope {
    /// Which of the three.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Queue(_) => "queue",
            Self::Type(_) => "type",
        }
    }

    /// The name of queue or type; nothing for the server.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Server => "",
            Self::Queue(name) | Self::Type(name) => name,
        }
    }

    /// From both.
    #[must_use]
    pub fn from_parts(word: &str, name: &str) -> Option<Self> {
        match word {
            "server" => Some(Self::Server),
            "queue" => Some(Self::Queue(name.to_owned())),
            "type" => Some(Self::Type(name.to_owned())),
            _ => None,
        }
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server => f.write_str("the server"),
            Self::Queue(name) => write!(f, "queue {name}"),
            Self::Type(name) => write!(f, "type {name}"),
        }
    }
}
