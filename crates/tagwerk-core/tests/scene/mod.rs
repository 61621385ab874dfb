//! A job, its history and a clock: what the engine and a store keep around `decide`, in the smallest form.
//!
//! [`Scene::happens`] does what every real caller has to do: it settles what is overdue, resolves the token, decides,
//! and applies the step. After every step it checks what must hold of any job.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's helpers; clippy takes only `#[test]` functions for tests"
)]

use tagwerk_core::{
    Action, Answer, Attempt, AttemptEnd, Begun, Caller, Ctx, EffectCall, ErrorClass, Event, Grant, History,
    Jitter, Job, JobId, LeaseBits, NewJob, OnUnknown, Outcome, Rejection, Report, ReportHash, RetryPolicy,
    Status, Step, Timestamp, decide, overdue,
};

/// Start of every scene.
pub(crate) const START: i64 = 1_700_000_000_000;
/// Lease length of [`Scene::claim`].
pub(crate) const LEASE_MS: i64 = 60_000;
/// The first back-off of the scenes' policy.
pub(crate) const BASE_MS: i64 = 5_000;

/// A lease of the scene, by the sequence number of its attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) u32);

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) job: Job,
    pub(crate) history: Vec<Attempt>,
    pub(crate) ctx: Ctx,
}

/// `ms` milliseconds after the start.
pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(START + ms)
}

/// A job that was just accepted, with these deviations from a plain one.
pub(crate) fn scene(change: impl FnOnce(&mut NewJob)) -> Scene {
    let mut new = NewJob {
        id: JobId(7),
        max_retries: 3,
        max_lease_losses: 4,
        available_at: at(0),
        expires_at: None,
        max_age_ms: None,
        on_unknown: OnUnknown::Verify,
        now: at(0),
    };
    change(&mut new);
    let retry = RetryPolicy { base_ms: BASE_MS, factor: 2.0, cap_ms: 3_600_000, jitter: Jitter::None };
    let ctx = Ctx { now: at(0), random: 0, retry, require_lease: false };
    Scene { job: Job::accepted(&new), history: Vec::new(), ctx }
}

/// A plain job that was just accepted.
pub(crate) fn plain() -> Scene {
    scene(|_| {})
}

pub(crate) fn completed() -> Outcome {
    Outcome::Completed
}

pub(crate) fn failed(class: ErrorClass) -> Outcome {
    Outcome::Failed { class, error: Some(format!("{} trouble", class.name())), retry_after_ms: None }
}

pub(crate) fn released(delay_ms: i64) -> Outcome {
    Outcome::Released { delay_ms, reason: None }
}

/// A report whose hash follows from its content, as the engine makes it.
pub(crate) fn report(outcome: Outcome) -> Report {
    let mut hash = [0; 16];
    for (at, byte) in format!("{outcome:?}").bytes().enumerate() {
        hash[at % 16] = u8::wrapping_add(hash[at % 16], byte).rotate_left(3);
    }
    Report { outcome, hash: ReportHash(hash) }
}

/// Bits of the lease with this sequence number.
pub(crate) fn bits(seq: u32) -> LeaseBits {
    LeaseBits(0xB175_0000 + u64::from(seq))
}

impl Scene {
    pub(crate) fn wait(&mut self, ms: i64) -> &mut Self {
        self.ctx.now = self.ctx.now.plus_ms(ms);
        self
    }

    /// Moves the clock to the instant at which the job is due.
    pub(crate) fn wait_until_due(&mut self) -> &mut Self {
        self.ctx.now = self.ctx.now.max(self.job.available_at);
        self
    }

    /// Settles what is overdue and lets the event happen.
    pub(crate) fn happens(&mut self, event: &Event) -> Result<Answer, Rejection> {
        self.settle();
        self.apply(event)
    }

    /// What time alone has made due.
    pub(crate) fn settle(&mut self) -> &mut Self {
        if let Some(event) = overdue(&self.job, self.ctx.now) {
            self.apply(&event).expect("what is overdue applies");
        }
        assert_eq!(overdue(&self.job, self.ctx.now), None, "one event settles all that is overdue");
        self
    }

    fn apply(&mut self, event: &Event) -> Result<Answer, Rejection> {
        let Step { job, history, answer } = decide(&self.job, event, &self.ctx)?;
        match history {
            History::Unchanged => {}
            History::Append(attempt) => {
                assert!(self.history.iter().all(|old| old.seq != attempt.seq), "one entry for each lease");
                self.history.push(*attempt);
            }
            History::Amend(attempt) => {
                let old =
                    self.history.iter_mut().find(|old| old.seq == attempt.seq).expect("amends an entry");
                assert!(!old.end.is_reported(), "only a loss is amended");
                *old = *attempt;
            }
        }
        self.job = job;
        self.check();
        Ok(answer)
    }

    /// What must hold of every job, whatever has happened to it.
    fn check(&self) {
        let job = &self.job;
        assert_eq!(job.lease.is_some(), job.status == Status::Running, "a lease exactly while running");
        assert_eq!(job.failure.is_some(), job.status == Status::Failed, "a failure exactly while in review");
        assert_eq!(job.finished_at.is_some(), job.status.is_settled(), "a finish time exactly while settled");
        assert!(!job.cancel_requested || job.status == Status::Running, "a stop is asked of a holder");
        let waits = job.status == Status::Pending;
        assert!(!waits || job.superseded_by.is_none(), "what is superseded never waits for another run");
        let ended = |effect: &tagwerk_core::Effect| effect.ended_at.is_some() != effect.is_open();
        assert!(job.effects.iter().all(ended), "an effect has an end exactly if it is not open");
        let is_open = job.open_effects().next().is_some();
        assert!(job.status != Status::Completed || !is_open, "nothing of a completed job is open");
        assert_eq!(job.started, job.leases > 0, "started by the first lease");
        let ended = usize::try_from(job.leases).unwrap() - usize::from(job.lease.is_some());
        assert_eq!(self.history.len(), ended, "each lease that ended is in the history");
        let lost = |attempt: &&Attempt| !attempt.end.is_reported();
        let earlier_lost = self.history.iter().filter(lost).any(|attempt| attempt.seq < job.leases);
        assert_eq!(job.earlier_lost, earlier_lost, "earlier_lost follows from the history");
        let newest_lost = self.history.iter().filter(lost).any(|attempt| attempt.seq == job.leases);
        assert_eq!(job.newest_lost, newest_lost, "newest_lost follows from the history");
        let releases = self.history.iter().filter(|attempt| attempt.end == AttemptEnd::Released).count();
        assert_eq!(usize::try_from(job.release_count).unwrap(), releases, "releases are counted");
        assert_eq!(job.attempt + job.release_count, job.leases, "a release gives its number back");
        assert_eq!(job.verify, self.verify_by_history(), "verify follows from the history");
    }

    /// Whether the last outcome that says anything was an unknown one.
    fn verify_by_history(&self) -> bool {
        let mut outcomes = self.history.iter().filter_map(|attempt| match attempt.end {
            AttemptEnd::Completed | AttemptEnd::Failed(ErrorClass::Transient | ErrorClass::Permanent) => {
                Some(false)
            }
            // The end of an attempt that was to be the last one: nothing follows that could be told.
            AttemptEnd::LeaseExpired | AttemptEnd::TimedOut if attempt.before.is_none() => None,
            AttemptEnd::Failed(ErrorClass::Unknown)
            | AttemptEnd::LeaseExpired
            | AttemptEnd::TimedOut
            | AttemptEnd::Forced => Some(true),
            AttemptEnd::Released | AttemptEnd::Cancelled => None,
        });
        outcomes.next_back().unwrap_or(false)
    }

    /// What the engine finds for a token.
    pub(crate) fn caller(&self, Token(seq): Token) -> Caller {
        match self.history.iter().find(|attempt| attempt.seq == seq) {
            Some(attempt) => Caller::Past(Box::new(attempt.clone())),
            None if seq == self.job.leases => Caller::Live(bits(seq)),
            None => Caller::Stranger,
        }
    }

    /// What the engine makes of a call without a token.
    pub(crate) fn no_token(&self, worker: Option<&str>) -> Caller {
        let newest = self.history.iter().find(|attempt| attempt.seq == self.job.leases);
        Caller::NoToken {
            worker: worker.map(str::to_owned),
            newest: newest.filter(|_| self.job.lease.is_none()).cloned().map(Box::new),
        }
    }

    pub(crate) fn grant(&self, worker: &str) -> Grant {
        Grant {
            bits: bits(self.job.leases + 1),
            worker: worker.to_owned(),
            lease_ms: LEASE_MS,
            timeout_ms: None,
            handles_verify: false,
            request_id: None,
        }
    }

    pub(crate) fn claims(&mut self, worker: &str) -> Result<Answer, Rejection> {
        self.happens(&Event::Claim(self.grant(worker)))
    }

    /// A claim that must succeed.
    pub(crate) fn claim(&mut self, worker: &str) -> Token {
        assert_eq!(self.claims(worker), Ok(Answer::Done));
        Token(self.job.leases)
    }

    /// A claim with a time limit that must succeed.
    pub(crate) fn claim_limited(&mut self, worker: &str, timeout_ms: i64) -> Token {
        let grant = Grant { timeout_ms: Some(timeout_ms), ..self.grant(worker) };
        assert_eq!(self.happens(&Event::Claim(grant)), Ok(Answer::Done));
        Token(self.job.leases)
    }

    /// Claims and lets the lease run out.
    pub(crate) fn lose(&mut self, worker: &str) -> Token {
        let token = self.claim(worker);
        self.wait(LEASE_MS).settle();
        token
    }

    /// Claims with a time limit and lets it run out.
    pub(crate) fn time_out(&mut self, worker: &str) -> Token {
        let token = self.claim_limited(worker, 10_000);
        self.wait(10_000).settle();
        token
    }

    pub(crate) fn heartbeat(&mut self, token: Token) -> Result<Answer, Rejection> {
        self.settle();
        self.happens(&Event::Heartbeat(self.caller(token)))
    }

    pub(crate) fn checkpoint(&mut self, token: Token) -> Result<Answer, Rejection> {
        self.settle();
        self.happens(&Event::Checkpoint(self.caller(token)))
    }

    /// A call about the effect `ship`; a begin brings the key `fresh-N`, N being the number of leases.
    pub(crate) fn effect(&mut self, token: Token, call: EffectCall) -> Result<Answer, Rejection> {
        self.settle();
        self.happens(&Event::Effect(self.caller(token), "ship".into(), call))
    }

    pub(crate) fn begins(&mut self, token: Token) -> Result<Answer, Rejection> {
        let fresh = format!("fresh-{}", self.job.leases).into();
        self.effect(token, EffectCall::Begin { own: None, fresh })
    }

    /// What the effect `ship` is to whoever works on the job.
    pub(crate) fn ship(&self) -> Option<Begun> {
        self.job.effect("ship").map(|effect| self.job.standing(effect))
    }

    pub(crate) fn reports(&mut self, token: Token, outcome: Outcome) -> Result<Answer, Rejection> {
        self.settle();
        self.happens(&Event::Report(self.caller(token), report(outcome)))
    }

    /// A report that must be accepted as new.
    pub(crate) fn report(&mut self, token: Token, outcome: Outcome) -> &mut Self {
        assert_eq!(self.reports(token, outcome), Ok(Answer::Done));
        self
    }

    pub(crate) fn reports_without_token(
        &mut self,
        worker: Option<&str>,
        outcome: Outcome,
    ) -> Result<Answer, Rejection> {
        self.settle();
        self.happens(&Event::Report(self.no_token(worker), report(outcome)))
    }

    pub(crate) fn operates(&mut self, action: Action) -> Result<Answer, Rejection> {
        self.happens(&Event::Operate { action, seen_version: None })
    }

    /// An action that must be done.
    pub(crate) fn operate(&mut self, action: Action) -> &mut Self {
        assert_eq!(self.operates(action), Ok(Answer::Done));
        self
    }

    /// A job with a newer version of the same object comes, which must matter to this one.
    pub(crate) fn supersede(&mut self) -> &mut Self {
        assert_eq!(self.happens(&Event::Supersede { by: JobId(8) }), Ok(Answer::Done));
        self
    }

    pub(crate) fn retry(&mut self) -> &mut Self {
        self.operate(Action::Retry { max_retries: None })
    }

    /// The newest entry of the history.
    pub(crate) fn newest(&self) -> &Attempt {
        self.history.last().expect("an attempt has ended")
    }

    /// Milliseconds from now until the job is due.
    pub(crate) fn due_in(&self) -> i64 {
        self.job.available_at.since_ms(self.ctx.now)
    }
}

/// `force-fail` with a reason.
pub(crate) fn force_fail() -> Action {
    Action::ForceFail { error: "stuck, says Ada".to_owned() }
}
