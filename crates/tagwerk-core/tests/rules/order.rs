//! Order within an ordering key. The core judges one moment ([`turn`]); here is a whole key over time, with every way in
//! which a job leaves its place, against the rule as the guide tells it.

#![expect(clippy::unwrap_used, reason = "a test's helpers; clippy takes only `#[test]` functions for tests")]

use proptest::prelude::*;
use tagwerk_core::order::{OnHeadFailure, stands, turn};
use tagwerk_core::{Action, Answer, AttemptEnd, ErrorClass, JobId, OnUnknown, Status};

use crate::scene::{LEASE_MS, Scene, Token, completed, failed, force_fail, released, scene};

/// Ids of the jobs of a key, in the order in which they came.
const A: JobId = JobId(11);
const B: JobId = JobId(12);
const C: JobId = JobId(13);

/// A job of the key.
#[derive(Clone, Debug)]
struct Member {
    scene: Scene,
    on_head_failure: OnHeadFailure,
    /// Whether a person has taken it out of the order since it failed.
    unblocked: bool,
}

/// All jobs of one key, lowest id first.
#[derive(Clone, Debug)]
struct Key(Vec<Member>);

impl Key {
    /// A, B and C, all waiting and due.
    fn abc(on_head_failure: OnHeadFailure) -> Self {
        let mut key = Self(Vec::new());
        for _ in 0..3 {
            key.enqueue(on_head_failure);
        }
        key
    }

    fn enqueue(&mut self, on_head_failure: OnHeadFailure) -> &mut Scene {
        let id = A.0 + i64::try_from(self.0.len()).unwrap();
        let mut scene = scene(|new| new.id = JobId(id));
        if let Some(first) = self.0.first() {
            let now = first.scene.ctx.now;
            scene.ctx.now = now;
            scene.job.available_at = now;
        }
        self.0.push(Member { scene, on_head_failure, unblocked: false });
        &mut self.0.last_mut().unwrap().scene
    }

    fn at(&mut self, id: JobId) -> &mut Member {
        self.0.iter_mut().find(|member| member.scene.job.id == id).unwrap()
    }

    fn scene(&mut self, id: JobId) -> &mut Scene {
        &mut self.at(id).scene
    }

    /// The clock goes on for all of them.
    fn wait(&mut self, ms: i64) {
        for member in &mut self.0 {
            member.scene.wait(ms).settle();
        }
    }

    /// Whose turn it is, asked as a store asks.
    fn turn(&self) -> Option<JobId> {
        let job = |member: &Member| (member.scene.job.id, member.scene.job.status);
        let is_in_order =
            |member: &&Member| !member.unblocked && stands(member.scene.job.status, member.on_head_failure);
        let lowest = self.0.iter().find(is_in_order).map(job);
        let running = self.0.iter().map(job).find(|(_, status)| *status == Status::Running);
        turn(lowest, running.map(|(id, _)| id))
    }

    /// Hands out the job whose turn it must be.
    fn claim(&mut self, id: JobId) -> Token {
        assert_eq!(self.turn(), Some(id));
        self.scene(id).claim("w")
    }

    /// Hands it out and lets it succeed.
    fn run(&mut self, id: JobId) {
        let token = self.claim(id);
        self.scene(id).report(token, completed());
    }

    fn retry(&mut self, id: JobId) {
        let member = self.at(id);
        member.scene.retry();
        member.unblocked = false;
    }

    fn unblock(&mut self, id: JobId) {
        let member = self.at(id);
        member.scene.operate(Action::Unblock);
        member.unblocked = true;
    }
}

#[test]
fn what_waits_or_runs_stands_and_what_is_final_does_not() {
    for on_head_failure in OnHeadFailure::ALL {
        let standing = Status::ALL.map(|status| stands(status, *on_head_failure));
        let holds = *on_head_failure == OnHeadFailure::Block;
        assert_eq!(standing, [true, true, false, holds, false], "{on_head_failure:?}");
    }
    assert_eq!(OnHeadFailure::default(), OnHeadFailure::Block);
}

#[test]
fn the_first_goes_if_it_waits_and_nobody_runs() {
    assert_eq!(turn(None, None), None);
    assert_eq!(turn(Some((A, Status::Pending)), None), Some(A));
    assert_eq!(turn(Some((A, Status::Failed)), None), None, "it holds");
    assert_eq!(turn(Some((A, Status::Running)), Some(A)), None);
    assert_eq!(
        turn(Some((A, Status::Pending)), Some(B)),
        None,
        "it came back, and waits for the one that runs"
    );
}

/// Where A is after it was handed out, and who goes next if a failure blocks, and if it is skipped.
type End = (fn(&mut Key, Token), Option<JobId>, Option<JobId>);

/// Every end of an attempt.
const ENDS: [(&str, End); 19] = [
    ("it still runs", (|_, _| (), None, None)),
    ("completed", (complete, Some(B), Some(B))),
    ("transient", (|key, token| report(key, token, ErrorClass::Transient), Some(A), Some(A))),
    ("transient, the last", (|key, token| last(key, token, ErrorClass::Transient), None, Some(B))),
    ("permanent", (|key, token| report(key, token, ErrorClass::Permanent), None, Some(B))),
    ("unknown", (|key, token| report(key, token, ErrorClass::Unknown), Some(A), Some(A))),
    ("unknown, the last", (|key, token| last(key, token, ErrorClass::Unknown), None, Some(B))),
    ("released", (release, Some(A), Some(A))),
    ("lease lost", (|key, _| key.wait(LEASE_MS), Some(A), Some(A))),
    ("lease lost, to be reviewed", (lose_for_review, None, Some(B))),
    ("completed late", (complete_late, Some(B), Some(B))),
    ("timed out", (time_out, Some(A), Some(A))),
    ("cancelled", (|key, _| operate(key, Action::Cancel { wait: false }), Some(B), Some(B))),
    ("asked to stop", (|key, _| operate(key, Action::Cancel { wait: true }), None, None)),
    ("stopped at its next call", (stop, Some(B), Some(B))),
    ("ended by force", (|key, _| operate(key, force_fail()), None, Some(B))),
    ("deleted", (|key, _| operate(key, Action::Delete), Some(B), Some(B))),
    ("superseded, goes on", (|key, _| assert!(key.scene(A).supersede().job.lease.is_some()), None, None)),
    ("superseded, not run again", (supersede, Some(B), Some(B))),
];

fn complete(key: &mut Key, token: Token) {
    key.scene(A).report(token, completed());
}

fn release(key: &mut Key, token: Token) {
    key.scene(A).report(token, released(5_000));
}

fn report(key: &mut Key, token: Token, class: ErrorClass) {
    key.scene(A).report(token, failed(class));
}

/// A failure after which no retry is left.
fn last(key: &mut Key, token: Token, class: ErrorClass) {
    key.scene(A).job.max_retries = 0;
    report(key, token, class);
}

fn lose_for_review(key: &mut Key, _: Token) {
    key.scene(A).job.on_unknown = OnUnknown::Review;
    key.wait(LEASE_MS);
}

/// Lost and in review, it held the key until its worker came with the result.
fn complete_late(key: &mut Key, token: Token) {
    lose_for_review(key, token);
    complete(key, token);
}

fn time_out(key: &mut Key, _: Token) {
    let lease = key.scene(A).job.lease.as_mut().unwrap();
    lease.time_limit_at = Some(lease.expires_at);
    key.wait(LEASE_MS);
    assert_eq!(key.scene(A).newest().end, AttemptEnd::TimedOut);
}

fn operate(key: &mut Key, action: Action) {
    key.scene(A).operate(action);
}

fn stop(key: &mut Key, token: Token) {
    operate(key, Action::Cancel { wait: true });
    let answer = key.scene(A).heartbeat(token);
    assert!(matches!(answer, Ok(Answer::Refused(_))), "{answer:?}");
}

fn supersede(key: &mut Key, token: Token) {
    key.scene(A).supersede();
    report(key, token, ErrorClass::Transient);
}

#[test]
fn after_every_end_of_the_first_it_is_known_who_goes_next() {
    for (name, (end, if_blocked, if_skipped)) in ENDS {
        for (on_head_failure, expected) in
            [(OnHeadFailure::Block, if_blocked), (OnHeadFailure::Skip, if_skipped)]
        {
            let mut key = Key::abc(on_head_failure);
            let token = key.claim(A);
            assert_eq!(key.turn(), None, "one at a time");
            end(&mut key, token);
            assert_eq!(key.turn(), expected, "{name}, {on_head_failure:?}");
            // Whoever goes next, C comes after B.
            if expected == Some(A) {
                key.wait(LEASE_MS);
                key.run(A);
            }
            if expected.is_some() {
                key.run(B);
                key.run(C);
                assert_eq!(key.turn(), None, "{name}");
            }
        }
    }
}

#[test]
fn a_head_that_is_not_due_holds_too() {
    let mut key = Key::abc(OnHeadFailure::Skip);
    key.scene(A).operate(Action::Replace { available_at: crate::scene::at(60_000) });
    assert_eq!(key.turn(), Some(A));
    assert!(key.scene(A).claims("w").is_err(), "not yet");
    key.wait(60_000);
    key.run(A);
    assert_eq!(key.turn(), Some(B));
}

#[test]
fn a_head_that_ends_while_it_waits_lets_the_next_one_go() {
    let mut key = Key::abc(OnHeadFailure::Block);
    key.scene(A).operate(Action::Cancel { wait: false });
    assert_eq!(key.turn(), Some(B));
    key.scene(B).supersede();
    assert_eq!(key.turn(), Some(C));
    let mut key = Key::abc(OnHeadFailure::Block);
    key.scene(A).job.expires_at = Some(crate::scene::at(1_000));
    key.wait(1_000);
    assert_eq!(key.turn(), None, "too old, and a failure like any other");
}

/// A fails and holds the key; then somebody decides.
fn held() -> Key {
    let mut key = Key::abc(OnHeadFailure::Block);
    let token = key.claim(A);
    report(&mut key, token, ErrorClass::Permanent);
    assert_eq!(key.turn(), None);
    key
}

#[test]
fn a_head_in_review_holds_until_it_is_retried_discarded_or_unblocked() {
    let mut key = held();
    key.retry(A);
    key.run(A);
    assert_eq!(key.turn(), Some(B));
    let mut key = held();
    operate(&mut key, Action::Discard);
    assert_eq!(key.turn(), Some(B));
    let mut key = held();
    key.unblock(A);
    assert_eq!((key.turn(), key.scene(A).job.status), (Some(B), Status::Failed));
}

#[test]
fn a_head_that_comes_back_waits_for_the_one_that_runs_and_then_goes_first() {
    let mut key = held();
    key.unblock(A);
    let token = key.claim(B);
    key.retry(A);
    assert_eq!(key.turn(), None, "B runs");
    key.scene(B).report(token, completed());
    assert_eq!(key.turn(), Some(A));
    key.run(A);
    key.run(C);
}

/// Something that happens to a key.
#[derive(Clone, Debug)]
enum Deed {
    Enqueue(OnHeadFailure, Option<i64>),
    Wait(i64),
    /// The job whose turn it is, if it is due.
    Claim,
    End(prop::sample::Index, tagwerk_core::Outcome),
    Operate(prop::sample::Index, Action),
    Supersede(prop::sample::Index),
}

fn deed() -> impl Strategy<Value = Deed> {
    let on_head_failure = prop::sample::select(OnHeadFailure::ALL.to_vec());
    let outcome = prop_oneof![
        3 => Just(completed()),
        3 => prop::sample::select(ErrorClass::ALL.to_vec()).prop_map(failed),
        1 => (0..20_000_i64).prop_map(released),
    ];
    let action = prop::sample::select(vec![
        Action::Cancel { wait: false },
        Action::Cancel { wait: true },
        Action::Retry { max_retries: None },
        Action::ForceRetry { max_retries: Some(0) },
        Action::Unblock,
        Action::Discard,
        force_fail(),
        Action::Delete,
    ]);
    prop_oneof![
        4 => (on_head_failure, prop::option::of(1..200_000_i64))
            .prop_map(|(on_head_failure, max_age_ms)| Deed::Enqueue(on_head_failure, max_age_ms)),
        3 => (0..LEASE_MS * 2).prop_map(Deed::Wait),
        8 => Just(Deed::Claim),
        5 => (any::<prop::sample::Index>(), outcome).prop_map(|(which, outcome)| Deed::End(which, outcome)),
        6 => (any::<prop::sample::Index>(), action).prop_map(|(which, action)| Deed::Operate(which, action)),
        1 => any::<prop::sample::Index>().prop_map(Deed::Supersede),
    ]
}

impl Key {
    fn happens(&mut self, deed: Deed) {
        match deed {
            Deed::Enqueue(on_head_failure, max_age_ms) => {
                let scene = self.enqueue(on_head_failure);
                scene.job.expires_at = max_age_ms.map(|ms| scene.ctx.now.plus_ms(ms));
                scene.job.max_retries = 1;
            }
            Deed::Wait(ms) => self.wait(ms),
            Deed::Claim => {
                let Some(id) = self.turn() else { return };
                let scene = self.scene(id);
                if scene.job.available_at <= scene.ctx.now {
                    scene.claim("w");
                }
            }
            Deed::End(which, outcome) => {
                let Some(scene) = self.any(which) else { return };
                let token = Token(scene.job.leases);
                drop(scene.reports(token, outcome));
            }
            Deed::Operate(which, action) => {
                let Some(member) = self.0.len().checked_sub(1).map(|_| which.index(self.0.len())) else {
                    return;
                };
                let member = &mut self.0[member];
                if member.scene.operates(action.clone()) == Ok(Answer::Done) {
                    member.unblocked = action == Action::Unblock;
                }
            }
            Deed::Supersede(which) => {
                let Some(scene) = self.any(which) else { return };
                drop(scene.happens(&tagwerk_core::Event::Supersede { by: JobId(99) }));
            }
        }
    }

    fn any(&mut self, which: prop::sample::Index) -> Option<&mut Scene> {
        if self.0.is_empty() { None } else { Some(&mut which.get_mut(&mut self.0).scene) }
    }

    /// The rule as the guide tells it, job by job: it waits, none of its key runs, and none with a lower id waits or
    /// holds.
    fn may_go(&self, candidate: &Member) -> bool {
        let job = &candidate.scene.job;
        let is_in_its_way = |other: &Member| {
            let is_before = other.scene.job.id < job.id;
            let holds = other.on_head_failure == OnHeadFailure::Block && !other.unblocked;
            match other.scene.job.status {
                Status::Running => true,
                Status::Pending => is_before,
                Status::Failed => is_before && holds,
                Status::Completed | Status::Cancelled => false,
            }
        };
        job.status == Status::Pending && !self.0.iter().any(is_in_its_way)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_a_key_the_turn_is_that_of_the_one_job_that_may_go(
        deeds in prop::collection::vec(deed(), 1..80),
    ) {
        let mut key = Key(Vec::new());
        for deed in deeds {
            key.happens(deed);
            let may_go: Vec<JobId> =
                key.0.iter().filter(|member| key.may_go(member)).map(|member| member.scene.job.id).collect();
            prop_assert_eq!(key.turn().into_iter().collect::<Vec<_>>(), may_go);
            let running = key.0.iter().filter(|member| member.scene.job.status == Status::Running).count();
            prop_assert!(running <= 1);
        }
    }

    /// Nobody decides anything: each job runs to its end before the next one begins, however often it is tried.
    #[test]
    fn left_alone_a_key_is_worked_off_one_after_the_other(
        ends in prop::collection::vec((any::<bool>(), 0..4_u32, prop::bool::weighted(0.3)), 1..12),
    ) {
        let mut key = Key(Vec::new());
        for (is_skipped, ..) in &ends {
            key.enqueue(if *is_skipped { OnHeadFailure::Skip } else { OnHeadFailure::Block });
        }
        let mut runs = Vec::new();
        while let Some(id) = key.turn() {
            let scene = key.scene(id);
            let due = scene.due_in().max(0);
            key.wait(due);
            let token = key.claim(id);
            runs.push(id);
            let (_, failures, is_permanent) = ends[usize::try_from(id.0 - A.0).unwrap()];
            let scene = key.scene(id);
            let outcome = match scene.job.attempt > failures {
                false => failed(ErrorClass::Transient),
                true if is_permanent => failed(ErrorClass::Permanent),
                true => completed(),
            };
            scene.report(token, outcome);
        }
        // Up to the first that holds: each as often as it failed and once more, in the order of the ids.
        let mut expected = Vec::new();
        for (place, (is_skipped, failures, is_permanent)) in ends.iter().enumerate() {
            let id = JobId(A.0 + i64::try_from(place).unwrap());
            expected.extend(std::iter::repeat_n(id, *failures as usize + 1));
            if *is_permanent && !is_skipped {
                break;
            }
        }
        prop_assert_eq!(runs, expected);
    }
}
