//! The effect journal: begin, finish, abort, by whom and when, and what an open effect stands in the way of.

use proptest::prelude::*;
use tagwerk_core::{
    Action, Answer, Assume, Assumed, Begun, EffectCall, EffectState, ErrorClass, Event, Grant, Reason,
    Rejection, Status, limits,
};

use crate::scene::{LEASE_MS, Scene, Token, bits, completed, failed, plain, released, report, scene};

fn finish(result: &str) -> EffectCall {
    EffectCall::Finish { result: Some(result.into()) }
}

fn own(key: &str) -> EffectCall {
    EffectCall::Begin { own: Some(key.into()), fresh: "unused".into() }
}

/// A job whose first attempt has begun the effect.
fn begun() -> (Scene, Token) {
    let mut s = plain();
    let token = s.claim("w");
    assert_eq!(s.begins(token), Ok(Answer::Done));
    assert_eq!(s.ship(), Some(Begun::New));
    (s, token)
}

/// The same, lost by a worker that handles verify, and claimed again.
fn in_doubt() -> (Scene, Token, Token) {
    let mut s = plain();
    let grant = Grant { handles_verify: true, ..s.grant("w") };
    assert_eq!(s.happens(&Event::Claim(grant)), Ok(Answer::Done));
    assert_eq!(s.begins(Token(1)), Ok(Answer::Done));
    s.wait(LEASE_MS).settle();
    assert_eq!(s.job.status, Status::Pending);
    let second = s.wait_until_due().claim("v");
    (s, Token(1), second)
}

fn key(s: &Scene) -> &str {
    s.job.effect("ship").map_or("none", |effect| &*effect.key)
}

fn open() -> Rejection {
    Rejection::EffectsOpen { names: vec!["ship".into()] }
}

#[test]
fn begin_again_in_the_same_lease_is_new_with_the_same_key() {
    let (mut s, token) = begun();
    let before = s.job.clone();
    assert_eq!(s.begins(token), Ok(Answer::Replayed));
    assert_eq!(s.effect(token, own("mine")), Ok(Answer::Replayed));
    assert_eq!((&s.job, s.ship(), key(&s)), (&before, Some(Begun::New), "fresh-1"));
    assert_eq!(s.job.version, 2, "what a worker does while it works is no new version");
}

#[test]
fn a_worker_may_bring_its_own_key() {
    let mut s = plain();
    let token = s.claim("w");
    assert_eq!(s.effect(token, own("order-7")), Ok(Answer::Done));
    assert_eq!(key(&s), "order-7");
}

#[test]
fn a_later_attempt_is_told_that_it_is_in_doubt_each_time_it_asks() {
    let (mut s, _, second) = in_doubt();
    assert!(s.job.verify);
    for _ in 0..2 {
        assert_eq!(s.begins(second), Ok(Answer::Replayed));
        assert_eq!((s.ship(), key(&s)), (Some(Begun::InDoubt), "fresh-1"));
    }
    assert_eq!(s.effect(second, finish("1")), Ok(Answer::Done));
    assert_eq!(s.ship(), Some(Begun::Done));
    s.report(second, completed());
}

#[test]
fn what_is_done_is_skipped_by_all_later_attempts() {
    let (mut s, token) = begun();
    assert_eq!(s.effect(token, finish("7")), Ok(Answer::Done));
    s.wait(LEASE_MS).settle();
    assert_eq!(s.job.status, Status::Pending, "a finished effect is no reason for review");
    let second = s.wait_until_due().claim("v");
    assert_eq!(s.begins(second), Ok(Answer::Replayed));
    let effect = s.job.effect("ship").unwrap();
    assert_eq!((s.ship(), effect.result.as_deref()), (Some(Begun::Done), Some("7")));
    assert_eq!(s.effect(second, EffectCall::Abort), Err(Rejection::EffectFinished));
    assert_eq!(s.effect(second, finish("7")), Ok(Answer::Replayed));
    assert_eq!(s.effect(second, finish("8")), Err(Rejection::EffectFinished));
}

#[test]
fn what_was_aborted_can_be_begun_again() {
    let (mut s, token) = begun();
    assert_eq!(s.effect(token, EffectCall::Abort), Ok(Answer::Done));
    assert_eq!(s.effect(token, EffectCall::Abort), Ok(Answer::Replayed));
    assert_eq!(s.ship(), Some(Begun::Aborted));
    s.wait(5);
    assert_eq!(s.begins(token), Ok(Answer::Done));
    assert_eq!((s.ship(), key(&s)), (Some(Begun::New), "fresh-1"), "the key stays");
    assert_eq!(s.effect(token, EffectCall::Abort), Ok(Answer::Done));
    assert_eq!(s.effect(token, own("other")), Ok(Answer::Done));
    assert_eq!(
        key(&s),
        "fresh-1",
        "whatever the worker wants by now: the remote system may know it by the first"
    );
    assert_eq!(s.job.effects.len(), 1);
}

#[test]
fn nothing_is_said_of_what_was_not_begun() {
    let mut s = plain();
    let token = s.claim("w");
    assert_eq!(s.effect(token, finish("1")), Err(Rejection::EffectNotBegun));
    assert_eq!(s.effect(token, EffectCall::Abort), Err(Rejection::EffectNotBegun));
}

#[test]
fn only_the_holder_begins() {
    let (mut s, first, second) = in_doubt();
    assert_eq!(s.begins(first), Err(Rejection::LeaseLost { may_report: false }));
    s.wait(LEASE_MS).settle();
    assert_eq!(s.begins(second), Err(Rejection::LeaseLost { may_report: s.job.status == Status::Failed }));
    let caller = s.no_token(Some("v"));
    for call in [own("k"), finish("1"), EffectCall::Abort] {
        let event = Event::Effect(caller.clone(), "ship".into(), call);
        assert_eq!(s.happens(&event), Err(Rejection::LeaseRequired));
    }
}

#[test]
fn that_it_happened_is_taken_from_late_and_stale_workers() {
    let (mut s, first, second) = in_doubt();
    assert_eq!(s.effect(first, EffectCall::Abort), Err(Rejection::LeaseLost { may_report: false }));
    assert_eq!(s.effect(first, finish("1")), Ok(Answer::Done), "stale: a newer lease exists");
    assert_eq!(s.begins(second), Ok(Answer::Replayed));
    assert_eq!(s.ship(), Some(Begun::Done));
    assert_eq!(s.effect(Token(99), finish("1")), Err(Rejection::LeaseLost { may_report: false }));

    let (mut s, token) = begun();
    s.wait(LEASE_MS).settle();
    assert_eq!(s.effect(token, finish("1")), Ok(Answer::Done), "late");
    let (mut s, token) = begun();
    s.wait(LEASE_MS).settle();
    assert_eq!(s.effect(token, EffectCall::Abort), Ok(Answer::Done), "late");
    let (mut s, token) = begun();
    s.operate(Action::Cancel { wait: false });
    assert_eq!(s.effect(token, EffectCall::Abort), Err(Rejection::Cancelled));
    assert_eq!(s.effect(token, finish("1")), Ok(Answer::Done), "of a cancelled job");
    assert_eq!(s.job.status, Status::Cancelled);
}

/// Somebody has looked too early and aborted; then the remote system did it after all.
#[test]
fn that_it_happened_counts_more_than_that_it_did_not() {
    let (mut s, first, second) = in_doubt();
    assert_eq!(s.effect(second, EffectCall::Abort), Ok(Answer::Done));
    assert_eq!(s.effect(first, finish("1")), Ok(Answer::Done));
    assert_eq!(s.ship(), Some(Begun::Done));
}

#[test]
fn a_job_with_an_open_effect_is_neither_completed_nor_given_back() {
    let (mut s, token) = begun();
    let before = s.job.clone();
    assert_eq!(s.reports(token, completed()), Err(open()));
    assert_eq!(s.reports(token, released(0)), Err(open()));
    assert_eq!(s.reports_without_token(Some("w"), completed()), Err(open()));
    assert_eq!(s.job, before, "the lease lives");
    assert_eq!(s.effect(token, finish("1")), Ok(Answer::Done));
    s.report(token, completed());
    assert_eq!(s.reports(token, completed()), Ok(Answer::Replayed));

    let (mut s, first, second) = in_doubt();
    assert_eq!(s.reports(second, completed()), Err(open()), "of any attempt");
    let unheard = Event::Unheard(bits(2), report(released(0)));
    assert_eq!(s.happens(&unheard), Ok(Answer::Done), "who never got the job has no say in it");
    assert_eq!((s.job.status, s.job.verify, s.ship()), (Status::Pending, true, Some(Begun::InDoubt)));
    assert_eq!(s.happens(&unheard), Err(Rejection::LeaseLost { may_report: false }));
    assert_eq!(s.begins(first), Err(Rejection::LeaseLost { may_report: false }));
}

#[test]
fn a_failure_can_be_reported_whatever_is_open() {
    for (class, status) in [
        (ErrorClass::Transient, Status::Pending),
        (ErrorClass::Permanent, Status::Failed),
        (ErrorClass::Unknown, Status::Failed),
    ] {
        let (mut s, token) = begun();
        s.report(token, failed(class));
        assert_eq!((s.job.status, s.ship()), (status, Some(Begun::InDoubt)), "{class:?}");
    }
}

#[test]
fn an_attempt_of_unknown_outcome_goes_to_review_unless_somebody_handles_it() {
    type End = fn(&mut Scene, Token);
    let lost: End = |s, _| {
        s.wait(LEASE_MS).settle();
    };
    let unknown: End = |s, token| {
        s.report(token, failed(ErrorClass::Unknown));
    };
    let late: End = |s, token| {
        s.wait(LEASE_MS).report(token, failed(ErrorClass::Unknown));
    };
    for end in [lost, unknown, late] {
        for (handles_verify, with_effect) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut s = plain();
            let grant = Grant { handles_verify, ..s.grant("w") };
            assert_eq!(s.happens(&Event::Claim(grant)), Ok(Answer::Done));
            if with_effect {
                assert_eq!(s.begins(Token(1)), Ok(Answer::Done));
            }
            end(&mut s, Token(1));
            let review = with_effect && !handles_verify;
            assert_eq!(s.job.status, if review { Status::Failed } else { Status::Pending });
            assert_eq!(s.job.failure.map(|failure| failure.reason), review.then_some(Reason::OutcomeUnknown));
            assert!(s.job.verify);
        }
    }
    let mut s = plain();
    let token = s.claim_limited("w", 10);
    assert_eq!(s.begins(token), Ok(Answer::Done));
    s.wait(10).settle();
    assert_eq!(s.job.failure.unwrap().reason, Reason::OutcomeUnknown, "a time-out");
    assert_eq!(s.begins(token), Err(Rejection::TimedOut { may_report: true }));
}

/// That the job kills its workers is what an operator should hear first.
#[test]
fn too_many_losses_are_told_before_the_effect() {
    let mut s = scene(|new| new.max_lease_losses = 1);
    let token = s.claim("w");
    assert_eq!(s.begins(token), Ok(Answer::Done));
    s.wait(LEASE_MS).settle();
    assert_eq!(s.job.failure.unwrap().reason, Reason::WorkerLost);
}

#[test]
fn a_holder_that_is_to_stop_still_says_what_happened() {
    let (mut s, token) = begun();
    s.operate(Action::Cancel { wait: true });
    assert_eq!(s.effect(token, finish("1")), Ok(Answer::Done));
    assert_eq!(s.job.status, Status::Running);
    assert_eq!(s.begins(token), Ok(Answer::Refused(Rejection::Cancelled)));
    assert_eq!((s.job.status, s.ship()), (Status::Cancelled, Some(Begun::Done)));
}

#[test]
fn what_a_person_has_looked_up_goes_with_the_retry() {
    for (assume, state) in [(Assume::Done, EffectState::Done), (Assume::NotDone, EffectState::Aborted)] {
        let (mut s, token) = begun();
        s.wait(LEASE_MS).settle();
        s.retry();
        let version = s.job.version;
        assert_eq!(s.happens(&Event::Assume(Assumed::All(assume))), Ok(Answer::Done));
        let effect = s.job.effect("ship").unwrap().clone();
        assert_eq!((effect.state, effect.assumed, effect.ended_at), (state, true, Some(s.ctx.now)));
        assert_eq!(s.job.version, version, "it is part of the retry");
        // The worker that did it knows better, and what came of it.
        assert_eq!(s.effect(token, finish("7")), Ok(Answer::Done));
        let effect = s.job.effect("ship").unwrap();
        assert_eq!((effect.assumed, effect.result.as_deref()), (false, Some("7")));
        let second = s.claim("v");
        assert_eq!(s.begins(second), Ok(Answer::Replayed));
        s.report(second, completed());
    }
}

#[test]
fn what_a_person_has_not_looked_up_stays_in_doubt() {
    let (mut s, token) = begun();
    for name in ["mail", "pack"] {
        assert_eq!(s.happens(&Event::Effect(s.caller(token), name.into(), own("k"))), Ok(Answer::Done));
    }
    s.wait(LEASE_MS).settle();
    s.retry();
    let found = [("mail".into(), Assume::Done), ("ship".into(), Assume::NotDone)];
    assert_eq!(s.happens(&Event::Assume(Assumed::Named(found.into()))), Ok(Answer::Done));
    let states: Vec<_> =
        s.job.effects.iter().map(|effect| (&*effect.name, effect.state, effect.assumed)).collect();
    assert_eq!(
        states,
        [
            ("ship", EffectState::Aborted, true),
            ("mail", EffectState::Done, true),
            ("pack", EffectState::Open, false)
        ]
    );
    assert_eq!(s.job.effects_in_doubt().map(|effect| &*effect.name).collect::<Vec<_>>(), ["pack"]);
}

#[test]
fn a_journal_has_an_end() {
    let mut s = plain();
    let token = s.claim("w");
    let begin = |n: usize| {
        let begin = EffectCall::Begin { own: None, fresh: "k".into() };
        Event::Effect(tagwerk_core::Caller::Live(bits(1)), format!("e{n}").into(), begin)
    };
    for n in 0..limits::EFFECTS_PER_JOB {
        assert_eq!(s.happens(&begin(n)), Ok(Answer::Done));
    }
    assert_eq!(limits::EFFECTS_PER_JOB, 100);
    assert_eq!(s.happens(&begin(100)), Err(Rejection::TooManyEffects));
    assert_eq!(s.happens(&begin(0)), Ok(Answer::Replayed));
    assert!(
        matches!(s.reports(token, completed()), Err(Rejection::EffectsOpen { names }) if names.len() == 100)
    );
}

#[derive(Clone, Debug)]
enum Deed {
    Claim(bool),
    Lose,
    Begin(u32),
    Finish(u32),
    Abort(u32),
    Complete(u32),
    Fail(u32),
    Retry,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        any::<bool>().prop_map(Deed::Claim),
        Just(Deed::Lose),
        (0..3_u32).prop_map(Deed::Begin),
        (0..3_u32).prop_map(Deed::Finish),
        (0..3_u32).prop_map(Deed::Abort),
        (0..3_u32).prop_map(Deed::Complete),
        (0..3_u32).prop_map(Deed::Fail),
        Just(Deed::Retry),
    ]
}

proptest! {
    /// Whatever anybody does: a worker is told "go ahead" only if nobody before it has begun the effect without saying that it
    /// did not happen; what is done stays done; the key changes for nobody; the job is not completed while it is open.
    #[test]
    fn nobody_is_sent_ahead_blindly(deeds in proptest::collection::vec(deed(), 1..40)) {
        let mut s = scene(|new| { new.max_retries = 1_000; new.max_lease_losses = 100; });
        let mut open_since = None;
        for deed in deeds {
            let back = |back: u32| Token(s.job.leases.wrapping_sub(back));
            let (was_done, old_key) = (s.ship() == Some(Begun::Done), s.job.effect("ship").map(|e| e.key.clone()));
            match deed {
                Deed::Claim(handles_verify) => {
                    s.wait_until_due();
                    let grant = Grant { handles_verify, ..s.grant("w") };
                    let _ = s.happens(&Event::Claim(grant));
                }
                Deed::Lose => drop(s.wait(LEASE_MS).settle()),
                Deed::Begin(n) => {
                    let token = back(n);
                    if s.begins(token).is_ok() {
                        prop_assert_eq!(token, Token(s.job.leases));
                        match s.ship() {
                            Some(Begun::New) => {
                                prop_assert!(open_since.is_none_or(|seq| seq == s.job.leases));
                                open_since = Some(s.job.leases);
                            }
                            Some(Begun::InDoubt) => prop_assert!(open_since.is_some_and(|seq| seq < s.job.leases)),
                            other => prop_assert_eq!(other, Some(Begun::Done)),
                        }
                    }
                }
                Deed::Finish(n) => {
                    let token = back(n);
                    if s.effect(token, finish("1")).is_ok() {
                        open_since = None;
                    }
                }
                Deed::Abort(n) => {
                    let token = back(n);
                    if s.effect(token, EffectCall::Abort).is_ok() {
                        open_since = None;
                    }
                }
                Deed::Complete(n) => {
                    let token = back(n);
                    if s.reports(token, completed()) == Ok(Answer::Done) {
                        prop_assert_eq!(open_since, None);
                    }
                }
                Deed::Fail(n) => {
                    let token = back(n);
                    let _ = s.reports(token, failed(ErrorClass::Transient));
                }
                Deed::Retry => {
                    let _ = s.operates(Action::Retry { max_retries: None });
                }
            }
            prop_assert!(!was_done || s.ship() == Some(Begun::Done));
            if let Some(old) = old_key {
                prop_assert_eq!(&*old, key(&s));
            }
            prop_assert_eq!(open_since.is_some(), s.job.open_effects().next().is_some());
        }
    }
}
