//! What the slots of a worker share.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tagwerk_client::api::Seconds;
use tagwerk_client::api::request::ClaimRequest;
use tagwerk_client::{Client, Error};
use tagwerk_engine::ports::{Clock, Entropy};
use tokio::sync::watch;

use super::Work;
use super::guard::Guard;
use super::journal::{Form, Journal, Writing};
use crate::cli::failure::{Failure, Told};
use crate::config;
use crate::system::{SystemClock, SystemEntropy};

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Claims and works.
    Run,
    /// Claims no more.
    Finish,
    /// Ends what runs.
    Abort,
}

impl Phase {
    /// What to tell people.
    pub(super) const fn announcement(self) -> &'static str {
        match self {
            Self::Run => "working",
            Self::Finish => {
                "claiming no more; ends when the running commands have ended (another signal ends them too)"
            }
            Self::Abort => "ending the running commands",
        }
    }
}

/// Everything that slots share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) clock: SystemClock,
    entropy: SystemEntropy,
    pub(super) command: Vec<OsString>,
    pub(super) journal: Journal,
    pub(super) trouble: Trouble,
    pub(super) guard: Guard,
    /// Limit of one run.
    pub(super) timeout: Option<Duration>,
    /// From SIGTERM to SIGKILL.
    pub(super) grace: Duration,
    /// Names of variables that no command inherits.
    pub(super) private: Vec<OsString>,
    /// What every claim says.
    claim: ClaimRequest,
    /// Makes request ids of this process unlike those of any other.
    tag: u64,
    /// When to claim no more.
    until: Option<Duration>,
    /// Jobs that may still be claimed.
    budget: AtomicU64,
    phase: watch::Sender<Phase>,
}

impl Shared {
    pub(super) fn new(work: Work, client: Client) -> Result<(Self, Writing), Failure> {
        let entropy = SystemEntropy::new()
            .map_err(|error| Failure::machine(format!("no randomness: {error}"), String::new()))?;
        let clock = SystemClock::new();
        let (journal, writing) = Journal::open(if work.json { Form::Json } else { Form::Text });
        let guard = Guard::start().unwrap_or_else(|error| {
            journal.note(&format!("no guard: if this worker is killed, its commands run on ({error})"));
            Guard::none()
        });
        let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
        let shared = Self {
            client,
            tag: entropy.u64(),
            entropy,
            journal,
            trouble: Trouble::default(),
            guard,
            timeout: work.timeout.map(length),
            grace: length(work.grace),
            private: config::own_variables(),
            until: work.time.map(|time| clock.monotonic() + length(time)),
            clock,
            budget: AtomicU64::new(work.max_jobs.unwrap_or(u64::MAX)),
            phase: watch::Sender::new(Phase::Run),
            claim: ClaimRequest {
                worker_id: work.name(),
                queues: some(work.queue),
                types: some(work.types),
                wait_seconds: None,
                lease_seconds: Some(work.lease),
                handles_verify: None,
                request_id: None,
            },
            command: work.command,
        };
        Ok((shared, writing))
    }

    /// Goes on to a phase; there is no way back. Whether that is news.
    pub(super) fn go_to(&self, phase: Phase) -> bool {
        self.phase.send_if_modified(|now| {
            let is_news = phase > *now;
            *now = phase.max(*now);
            is_news
        })
    }

    /// A view of the phase that can be waited for.
    pub(super) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// How much longer jobs may be claimed; `None` when no more.
    pub(super) fn time_left(&self) -> Option<Duration> {
        if *self.phase.borrow() != Phase::Run {
            return None;
        }
        match self.until {
            None => Some(Duration::MAX),
            Some(until) => until.checked_sub(self.clock.monotonic()).filter(|left| !left.is_zero()),
        }
    }

    /// Takes one of the jobs that may still be claimed.
    pub(super) fn take_ticket(&self) -> bool {
        let one_less = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Gives it back, since nothing was claimed.
    pub(super) fn return_ticket(&self) {
        let one_more = |left: u64| Some(left.saturating_add(1));
        let _ = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
    }

    /// A claim with a name of its own.
    pub(super) fn claim(&self, slot: u32, number: u64) -> ClaimRequest {
        ClaimRequest { request_id: Some(format!("{:016x}-{slot}-{number}", self.tag)), ..self.claim.clone() }
    }

    /// A number that nobody can foresee.
    pub(super) fn chance(&self) -> u64 {
        self.entropy.u64()
    }
}

/// Until the end has come at least as far as this.
pub(super) async fn reach(now: &mut watch::Receiver<Phase>, phase: Phase) {
    // The sender outlives the slots.
    drop(now.wait_for(|now| *now >= phase).await);
}

/// Times of the wire as times of the clock; negative ones do not get past the command line.
pub(super) fn length(seconds: Seconds) -> Duration {
    Duration::from_millis(u64::try_from(seconds.ms()).unwrap_or(0))
}

/// The way to the server: said once when it breaks, once when it is back.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reached: bool,
    /// What is wrong now.
    now: Option<Told>,
}

impl Trouble {
    /// A call was answered.
    pub(super) fn over(&self, journal: &Journal) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.reached = true;
        if state.now.take().is_some() {
            journal.note("the server answers again");
        }
    }

    /// A call was not answered, or with "not now".
    pub(super) fn note(&self, error: &Error, journal: &Journal) {
        let told = Told::from(error);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.reached |= !error.is_unreachable();
        if state.now.as_ref().is_none_or(|before| before.exit != told.exit) {
            let advice = if told.advice.is_empty() { String::new() } else { format!(" ({})", told.advice) };
            journal.note(&format!("{}; trying again{advice}", told.message));
        }
        state.now = Some(told);
    }

    /// What to say at the end if no call was ever answered.
    pub(super) fn never_reached(&self) -> Option<Told> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.reached { None } else { state.now.clone() }
    }
}
