//! Reports: in time, late, stale, repeated, without token.

use tagwerk_core::{Action, AttemptEnd, Call, ErrorClass, Outcome, Rejection, Status};
use tagwerk_engine::command::{EnqueueJob, Holder, Refusal, Said};
use tagwerk_engine::row::{Counter, Progress};
use tagwerk_engine::settings::{LeaseToken, Settings};

use crate::rig::{Rig, claim, completed, failed, job, rejection, released, token};

#[test]
fn complete_keeps_the_result_and_writes_one_attempt() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    let said = Said::Report { outcome: Outcome::Completed, result: Some("{\"n\":1}".into()) };
    let answer = rig.say(&held, said).unwrap();
    assert!(!answer.replayed);
    let full = rig.job(id);
    assert_eq!(
        (full.row.job.status, full.row.note.result.as_deref()),
        (Status::Completed, Some("{\"n\":1}"))
    );
    let history = rig.attempts(id);
    assert_eq!(history.len(), 1);
    assert_eq!((history[0].attempt.end, history[0].attempt.number), (AttemptEnd::Completed, 1));
    assert_eq!(rig.tally().get(Counter::Completions), 1);
    rig.assert_clean();
}

#[test]
fn a_repeated_report_is_answered_as_before_and_another_content_is_refused() {
    let mut rig = Rig::new();
    rig.create(job("t"));
    let held = rig.take("w");
    assert!(!rig.say(&held, completed()).unwrap().replayed);
    assert!(rig.say(&held, completed()).unwrap().replayed);
    let refused = rejection(rig.say(&held, failed(ErrorClass::Transient)));
    assert_eq!(refused, Rejection::AlreadyReported { counted: AttemptEnd::Completed });
    assert_eq!(rig.tally().get(Counter::Completions), 1);
}

#[test]
fn f055_release_and_fail_for_the_same_lease_in_one_batch_first_wins() {
    for first in [released(), failed(ErrorClass::Transient)] {
        let mut rig = Rig::new();
        let id = rig.create(job("t"));
        let held = rig.take("w");
        let second = if first == released() { failed(ErrorClass::Transient) } else { released() };
        let call = |said| tagwerk_engine::command::WorkerCall { id, holder: token(&held), said };
        let results = rig.work(vec![call(first), call(second)]).results;
        assert!(results[0].is_ok());
        assert!(matches!(
            results[1],
            Err(Refusal::Rejected { rejection: Rejection::AlreadyReported { .. }, .. })
        ));
        assert_eq!(rig.attempts(id).len(), 1);
        rig.assert_clean();
    }
}

#[test]
fn f016_a_stale_worker_is_fenced_and_its_calls_are_kept() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let a = rig.take("a");
    rig.advance(62_000);
    let b = rig.take("b");
    assert_eq!(b.job.row.job.id, id);
    for said in [Said::Heartbeat { progress: None }, completed(), failed(ErrorClass::Transient)] {
        assert_eq!(rejection(rig.say(&a, said)), Rejection::LeaseLost { may_report: false });
    }
    let history = rig.attempts(id);
    assert_eq!(
        (history[0].refused_calls, history[0].last_refused.map(|(call, _)| call)),
        (3, Some(Call::Fail))
    );
    rig.say(&b, completed()).unwrap();
    assert_eq!(rig.job(id).row.job.attempt, 2);
    rig.assert_clean();
}

#[test]
fn f017_a_late_report_counts_until_a_person_has_acted() {
    let mut rig = Rig::new();
    let id = rig.create(EnqueueJob { max_retries: Some(0), ..job("t") });
    let held = rig.take("w");
    rig.advance(60_000);
    assert_eq!(rig.status(id), Status::Failed);
    assert_eq!(
        rejection(rig.say(&held, Said::Heartbeat { progress: None })),
        Rejection::LeaseLost { may_report: true }
    );
    rig.say(&held, completed()).unwrap();
    let full = rig.job(id);
    assert_eq!(
        (full.row.job.status, full.row.job.lease_losses, full.row.job.error),
        (Status::Completed, 0, None)
    );
    let history = rig.attempts(id);
    assert_eq!(
        (history.len(), history[0].attempt.late, history[0].attempt.end),
        (1, true, AttemptEnd::Completed)
    );
    rig.assert_clean();

    let id = rig.create(EnqueueJob { max_retries: Some(0), ..job("t") });
    let held = rig.take("w");
    rig.advance(60_000);
    rig.operate(id, Action::Retry { max_retries: None }).unwrap();
    assert_eq!(rejection(rig.say(&held, completed())), Rejection::LeaseLost { may_report: false });
    assert_eq!(rig.status(id), Status::Pending);
}

#[test]
fn a_report_exactly_at_the_end_of_the_lease_is_late_in_the_same_batch() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    rig.clock.advance(3_000);
    rig.tick();
    for _ in 0..19 {
        rig.clock.advance(3_000);
    }
    // 60 s after the claim; the server stood still for 57 s of it, so the lease was moved along.
    let lease = rig.job(id).row.job.lease.unwrap();
    assert_eq!(lease.expires_at.since_ms(lease.claimed_at), 60_000);
    assert!(rig.say(&held, completed()).is_ok());
    assert!(!rig.attempts(id)[0].attempt.late, "time in which nobody could report does not count");
}

#[test]
fn the_plain_loop_needs_no_token_but_a_double_cannot_close_anothers_run() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    rig.take("w");
    rig.call(id, Holder::default(), completed()).unwrap();
    assert_eq!(rig.status(id), Status::Completed);

    let id = rig.create(job("t"));
    rig.take("w");
    rig.advance(62_000);
    let b = rig.take("b");
    assert_eq!(rejection(rig.call(id, Holder::default(), completed())), Rejection::LeaseRequired);
    let named = Holder { token: None, worker: Some("b".into()) };
    assert_eq!(
        rejection(rig.call(id, named, completed())),
        Rejection::LeaseRequired,
        "an earlier lease was lost"
    );
    rig.say(&b, completed()).unwrap();

    let id = rig.create(job("t"));
    assert!(matches!(rejection(rig.call(id, Holder::default(), completed())), Rejection::NotRunning { .. }));
    rig.take("w");
    let other = Holder { token: None, worker: Some("x".into()) };
    assert_eq!(rejection(rig.call(id, other, completed())), Rejection::LeaseRequired);
    let beat = Said::Heartbeat { progress: None };
    assert_eq!(rejection(rig.call(id, Holder::default(), beat)), Rejection::LeaseRequired);
    let own = Holder { token: None, worker: Some("w".into()) };
    rig.call(id, own.clone(), completed()).unwrap();
    assert!(rig.call(id, own, completed()).unwrap().replayed);
}

#[test]
fn require_lease_refuses_reports_without_token() {
    let mut rig = Rig::with(Settings { lease_token: LeaseToken::Required, ..Settings::default() });
    let id = rig.create(job("t"));
    let held = rig.take("w");
    assert_eq!(rejection(rig.call(id, Holder::default(), completed())), Rejection::LeaseRequired);
    rig.say(&held, completed()).unwrap();
}

#[test]
fn f006_a_heartbeat_extends_from_now_and_keeps_progress_and_version() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    let version = rig.job(id).row.job.version;
    for _ in 0..20 {
        rig.advance(50_000);
        let progress = Progress { done: Some(1), total: Some(2), message: Some("half".into()) };
        let beat = Said::Heartbeat { progress: Some(progress) };
        let answer = rig.say(&held, beat).unwrap();
        assert_eq!(answer.job.row.job.lease.as_ref().unwrap().expires_at, rig.now().plus_ms(60_000));
        assert!(rig.claim(claim("thief")).jobs.is_empty());
    }
    let full = rig.job(id);
    assert_eq!((full.row.job.version, full.row.job.attempt), (version, 1));
    assert_eq!(full.row.note.progress.unwrap().message.as_deref(), Some("half"));
    rig.say(&held, Said::Checkpoint("{\"at\":5}".into())).unwrap();
    rig.advance(62_000);
    let next = rig.take("b");
    assert_eq!(
        next.job.row.note.checkpoint.as_deref(),
        Some("{\"at\":5}"),
        "the next attempt gets the last one"
    );
}

#[test]
fn f024_the_time_limit_ends_an_attempt_heartbeats_or_not() {
    let mut rig = Rig::new();
    let id = rig.create(EnqueueJob { timeout_ms: Some(90_000), ..job("t") });
    let held = rig.take("w");
    rig.advance(50_000);
    rig.say(&held, Said::Heartbeat { progress: None }).unwrap();
    rig.advance(40_000);
    let refused = rejection(rig.say(&held, Said::Heartbeat { progress: None }));
    assert_eq!(refused, Rejection::TimedOut { may_report: true });
    let full = rig.job(id);
    assert_eq!(
        (full.row.job.status, full.row.job.lease_losses, full.row.job.retry_count),
        (Status::Pending, 0, 1)
    );
    assert_eq!(rig.tally().get(Counter::TimeOuts), 1);
}

#[test]
fn cancel_with_wait_stops_the_holder_at_its_next_call() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    let held = rig.take("w");
    rig.operate(id, Action::Cancel { wait: true }).unwrap();
    assert_eq!(rig.status(id), Status::Running);
    assert_eq!(rejection(rig.say(&held, completed())), Rejection::Cancelled);
    assert_eq!(rig.status(id), Status::Cancelled);
    assert_eq!(rejection(rig.say(&held, completed())), Rejection::Cancelled);
    let history = rig.attempts(id);
    assert_eq!((history[0].attempt.end, history[0].refused_calls), (AttemptEnd::Cancelled, 2));
    assert_eq!(
        history[0].last_refused.map(|(call, _)| call),
        Some(Call::Complete),
        "what it said is not lost"
    );
    rig.assert_clean();
}

#[test]
fn calls_about_no_job_and_with_a_strange_token() {
    let mut rig = Rig::new();
    let id = rig.create(job("t"));
    rig.take("w");
    let nobody = tagwerk_core::JobId(999);
    assert_eq!(rig.call(nobody, Holder::default(), completed()), Err(Refusal::NoSuchJob(nobody)));
    let strange = Holder { token: Some("0".repeat(32)), worker: None };
    assert_eq!(rejection(rig.call(id, strange, completed())), Rejection::LeaseLost { may_report: false });
    assert_eq!(rig.status(id), Status::Running);
}

#[test]
fn f152_totals_equal_what_clients_saw() {
    let mut rig = Rig::new();
    rig.enqueue((0..10).map(|_| job("t")).collect());
    let mut held: Vec<_> = (0..10).map(|_| rig.take("w")).collect();
    let lost = held.split_off(8);
    for (n, held) in held.iter().enumerate() {
        let said = if n % 2 == 0 { completed() } else { failed(ErrorClass::Permanent) };
        rig.say(held, said.clone()).unwrap();
        rig.say(held, said).unwrap();
    }
    rig.advance(60_000);
    rig.say(&lost[0], completed()).unwrap();
    let tally = rig.tally();
    let counts = [
        Counter::Enqueued,
        Counter::Claims,
        Counter::Completions,
        Counter::Failures,
        Counter::LeaseLosses,
        Counter::Reviews,
    ]
    .map(|counter| tally.get(counter));
    assert_eq!(counts, [10, 10, 5, 4, 2, 4]);
    rig.assert_clean();
}
