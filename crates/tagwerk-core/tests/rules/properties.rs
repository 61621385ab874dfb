//! What holds after any sequence of events whatsoever. [`Scene`] checks the state of the job after every step; here is
//! what only a sequence can show.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tagwerk_core::{
    Action, Answer, ErrorClass, Event, Grant, Jitter, Job, JobId, Lease, OnUnknown, Outcome, Rejection,
    RetryPolicy, Status, decide, overdue,
};

use crate::scene::{LEASE_MS, Scene, Token, at, force_fail, released, report, scene};

/// Something that somebody does.
#[derive(Clone, Debug)]
enum Deed {
    Wait(i64),
    WaitUntilDue,
    Claim { timeout_ms: Option<i64> },
    Heartbeat(u32),
    Checkpoint(u32),
    Report(u32, Outcome),
    ReportWithoutToken(Option<String>, Outcome),
    Operate(Action, Option<i64>),
    Supersede,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let class = prop::sample::select(ErrorClass::ALL.to_vec());
    let retry_after = prop::option::of(0..100_000_i64);
    let error = prop::option::of("[ab]");
    prop_oneof![
        1 => Just(Outcome::Completed),
        4 => (class, error, retry_after)
            .prop_map(|(class, error, retry_after_ms)| Outcome::Failed { class, error, retry_after_ms }),
        2 => (0..2_000_i64).prop_map(released),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        1 => any::<bool>().prop_map(|wait| Action::Cancel { wait }),
        5 => prop::option::of(0..3_u32).prop_map(|max_retries| Action::Retry { max_retries }),
        2 => prop::option::of(0..3_u32).prop_map(|max_retries| Action::ForceRetry { max_retries }),
        1 => Just(Action::Discard),
        2 => Just(force_fail()),
        1 => Just(Action::Delete),
        1 => (0..100_000_i64).prop_map(|ms| Action::Replace { available_at: at(ms) }),
        1 => Just(Action::Unblock),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    // Tokens are counted back from the newest lease: 0 is that one, 9 most likely nobody's.
    let back = || prop_oneof![8 => Just(0_u32), 2 => Just(1), 1 => Just(2), 1 => Just(9)];
    prop_oneof![
        4 => (0..2 * LEASE_MS).prop_map(Deed::Wait),
        6 => Just(Deed::WaitUntilDue),
        10 => prop::option::of(1..2 * LEASE_MS).prop_map(|timeout_ms| Deed::Claim { timeout_ms }),
        2 => back().prop_map(Deed::Heartbeat),
        1 => back().prop_map(Deed::Checkpoint),
        6 => (back(), outcome()).prop_map(|(back, outcome)| Deed::Report(back, outcome)),
        2 => (prop::option::of("w[12]"), outcome())
            .prop_map(|(worker, outcome)| Deed::ReportWithoutToken(worker, outcome)),
        1 => Just(Deed::Supersede),
        2 => (action(), prop::option::of(0..3_i64)).prop_map(|(action, seen)| Deed::Operate(action, seen)),
    ]
}

fn any_scene() -> impl Strategy<Value = Scene> {
    let jitter = prop::sample::select(Jitter::ALL.to_vec());
    let policy = (0..10_000_i64, 1.0..4.0_f64, 0..100_000_i64, jitter);
    let on_unknown = prop::sample::select(OnUnknown::ALL.to_vec());
    (0..5_u32, 0..6_u32, prop::option::of(1..500_000_i64), any::<bool>(), on_unknown, policy).prop_map(
        |(max_retries, max_lease_losses, max_age_ms, is_length, on_unknown, policy)| {
            let mut s = scene(|new| {
                new.max_retries = max_retries;
                new.max_lease_losses = max_lease_losses;
                new.expires_at = max_age_ms.map(at);
                new.max_age_ms = max_age_ms.filter(|_| is_length);
                new.on_unknown = on_unknown;
            });
            let (base_ms, factor, cap_ms, jitter) = policy;
            s.ctx.retry = RetryPolicy { base_ms, factor, cap_ms, jitter };
            s
        },
    )
}

/// A scene with what the properties count.
struct Play {
    scene: Scene,
    /// Claims since the enqueue or the last retry from review.
    claims: u32,
    /// Releases since then.
    releases: u32,
    /// Accepted reports for each lease.
    accepted: BTreeMap<u32, u32>,
}

impl Play {
    fn act(&mut self, deed: &Deed, random: u64) {
        self.scene.ctx.random = random;
        match deed {
            Deed::Wait(ms) => drop(self.scene.wait(*ms)),
            Deed::WaitUntilDue => drop(self.scene.wait_until_due()),
            _ => {}
        }
        let before = self.scene.job.clone();
        self.scene.settle();
        assert_version(&before, &self.scene.job);
        if let Some(event) = self.event(deed) {
            self.happens(&event);
        }
        assert_way_out(&self.scene);
    }

    fn token(&self, back: u32) -> Token {
        Token(self.scene.job.leases.wrapping_sub(back))
    }

    fn event(&self, deed: &Deed) -> Option<Event> {
        let s = &self.scene;
        Some(match deed {
            Deed::Wait(_) | Deed::WaitUntilDue => return None,
            Deed::Claim { timeout_ms } => {
                let worker = if s.job.leases.is_multiple_of(2) { "w1" } else { "w2" };
                Event::Claim(Grant { timeout_ms: *timeout_ms, ..s.grant(worker) })
            }
            Deed::Heartbeat(back) => Event::Heartbeat(s.caller(self.token(*back))),
            Deed::Checkpoint(back) => Event::Checkpoint(s.caller(self.token(*back))),
            Deed::Report(back, outcome) => {
                Event::Report(s.caller(self.token(*back)), report(outcome.clone()))
            }
            Deed::ReportWithoutToken(worker, outcome) => {
                Event::Report(s.no_token(worker.as_deref()), report(outcome.clone()))
            }
            Deed::Supersede => Event::Supersede { by: JobId(8) },
            Deed::Operate(action, seen) => {
                Event::Operate { action: action.clone(), seen_version: seen.map(|back| s.job.version - back) }
            }
        })
    }

    fn happens(&mut self, event: &Event) {
        let (before, history) = (self.scene.job.clone(), self.scene.history.clone());
        let answer = self.scene.happens(event);
        let after = &self.scene.job;
        assert_version(&before, after);
        match answer {
            Err(_) | Ok(Answer::Replayed) => {
                let is_refused_out_of_turn = matches!(answer, Err(Rejection::DoesNotApply { .. }));
                assert!(!is_refused_out_of_turn, "a settled job can be judged for {event:?}");
                assert_eq!((&before, &history), (after, &self.scene.history), "nothing changed: {event:?}");
                return;
            }
            Ok(Answer::Refused(_)) => assert_eq!(after.status, Status::Cancelled),
            Ok(Answer::Done) => {}
        }
        let is_contact = matches!(event, Event::Heartbeat(_) | Event::Checkpoint(_));
        let versions = i64::from(!(is_contact && answer == Ok(Answer::Done)));
        assert_eq!(after.version, before.version + versions, "{event:?}");
        self.count(event, &before, answer == Ok(Answer::Done));
    }

    #[expect(clippy::fn_params_excessive_bools, reason = "a test's own bookkeeping")]
    fn count(&mut self, event: &Event, before: &Job, done: bool) {
        match event {
            Event::Claim(_) => {
                assert!(before.available_at <= self.scene.ctx.now, "never before its due time");
                assert!(before.expires_at.is_none_or(|at| at > self.scene.ctx.now), "never after its age");
                self.claims += 1;
            }
            Event::Report(_, report) if done => {
                *self.accepted.entry(before.leases).or_default() += 1;
                self.releases += u32::from(matches!(report.outcome, Outcome::Released { .. }));
            }
            Event::Operate { action: Action::Retry { .. } | Action::ForceRetry { .. }, .. } => {
                (self.claims, self.releases) = (0, 0);
            }
            _ => {}
        }
        let job = &self.scene.job;
        assert!(self.accepted.values().all(|count| *count <= 1), "never two accepted reports of one lease");
        let runs = self.claims - self.releases;
        assert!(runs <= job.max_retries + 1, "{runs} runs with {} retries", job.max_retries);
        assert!(job.retry_count <= job.max_retries);
        assert!(job.lease_losses <= job.max_lease_losses.max(1));
    }
}

/// Versions never fall, and rise with every change of state.
fn assert_version(before: &Job, after: &Job) {
    assert!(after.version >= before.version);
    if after.status != before.status {
        assert!(after.version > before.version, "a change of state is a new version");
    }
    if after.version == before.version {
        assert_eq!(after.updated_at, before.updated_at);
    }
}

/// Every job that has not ended for good can be moved on, by a claim, by time or by a person.
fn assert_way_out(scene: &Scene) {
    let mut s = scene.clone();
    let status = s.settle().job.status;
    match status {
        Status::Pending => {
            s.ctx.now = s.ctx.now.max(s.job.available_at);
            s.settle();
            assert!(s.job.status == Status::Failed || s.claims("w1") == Ok(Answer::Done));
        }
        Status::Running => {
            s.ctx.now = s.job.lease.as_ref().map_or(s.ctx.now, Lease::ends_at);
            s.settle();
        }
        Status::Failed => drop(s.operate(Action::ForceRetry { max_retries: None })),
        Status::Completed | Status::Cancelled => return,
    }
    assert_ne!(s.job.status, status, "a state without a way out");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f003_f077_no_sequence_of_events_breaks_a_rule(
        scene in any_scene(),
        deeds in prop::collection::vec((deed(), any::<u64>()), 1..60),
    ) {
        let mut play = Play { scene, claims: 0, releases: 0, accepted: BTreeMap::new() };
        for (deed, random) in deeds {
            play.act(&deed, random);
        }
    }

    #[test]
    fn decisions_depend_on_nothing_but_their_arguments(
        scene in any_scene(),
        deeds in prop::collection::vec((deed(), any::<u64>()), 1..40),
    ) {
        let run = || {
            let mut play =
                Play { scene: scene.clone(), claims: 0, releases: 0, accepted: BTreeMap::new() };
            for (deed, random) in &deeds {
                play.act(deed, *random);
            }
            (play.scene.job, play.scene.history)
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn jobs_at_the_ends_of_every_range_do_not_overflow(
        numbers in prop::array::uniform6(prop::sample::select(vec![0, 1, u32::MAX - 1, u32::MAX])),
        times in prop::array::uniform4(prop::sample::select(vec![i64::MIN, -1, 0, 1, i64::MAX])),
        now in prop::sample::select(vec![i64::MIN, 0, i64::MAX]),
        outcome in outcome(),
        random: u64,
    ) {
        let mut s = scene(|new| (new.max_retries, new.max_lease_losses) = (numbers[0], numbers[1]));
        let at = tagwerk_core::Timestamp::from_millis;
        s.ctx.now = at(now);
        s.ctx.random = random;
        s.job.version = i64::MAX;
        s.job.available_at = at(i64::MIN);
        (s.job.attempt, s.job.leases, s.job.release_count) = (numbers[2], numbers[3], numbers[4]);
        (s.job.retry_count, s.job.lease_losses) = (numbers[5], numbers[2]);
        let grant = Grant { lease_ms: times[0], timeout_ms: Some(times[1]), ..s.clone().grant_at_edge() };
        let Ok(step) = decide(&s.job, &Event::Claim(grant), &s.ctx) else { return Ok(()) };
        for event in [
            overdue(&step.job, s.ctx.now).unwrap_or(Event::AttemptOver),
            Event::Heartbeat(tagwerk_core::Caller::Live(crate::scene::bits(1))),
            Event::Report(tagwerk_core::Caller::Live(crate::scene::bits(1)), report(outcome)),
            Event::Operate { action: force_fail(), seen_version: Some(times[2]) },
        ] {
            // Whatever is decided: arithmetic must not panic.
            let _ = decide(&step.job, &event, &s.ctx);
        }
    }
}

impl Scene {
    /// A grant that does not count on from the number of leases.
    fn grant_at_edge(mut self) -> Grant {
        self.job.leases = 0;
        self.grant("w1")
    }
}
