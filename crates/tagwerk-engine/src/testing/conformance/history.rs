//! The history of a job: its attempts, calls that were refused, and what operators did.

use tagwerk_core::{Attempt, AttemptEnd, Before, Call, ErrorClass, JobId, ReportHash};

use super::steps::{add, add_one, at, attempt, job, read, undo, write};
use super::{Bench, odd};
use crate::row::{ActionRow, AttemptRow};

fn put(bench: &mut dyn Bench, attempts: &[(JobId, Attempt)]) {
    write(bench, |tx| tx.put_attempts(attempts).expect("attempts are written"));
}

fn kept(bench: &mut dyn Bench, id: JobId) -> Vec<Attempt> {
    let in_tx = undo(bench, |tx| tx.attempts(&[id]).expect("attempts are read").remove(0));
    let rows = shown(bench, id);
    assert!(in_tx.iter().eq(rows.iter().map(|row| &row.attempt)), "a snapshot shows the same attempts");
    in_tx
}

fn shown(bench: &mut dyn Bench, id: JobId) -> Vec<AttemptRow> {
    read(bench, |view| view.attempts(id, 0, 1_000).expect("attempts are read"))
}

fn seqs(attempts: &[Attempt]) -> Vec<u32> {
    attempts.iter().map(|attempt| attempt.seq).collect()
}

fn new_job(bench: &mut dyn Bench) -> JobId {
    write(bench, |tx| add_one(tx, job())).job.id
}

/// Every field of an attempt comes back in its own place, set and not set.
pub fn f119_every_field_of_an_attempt_comes_back(bench: &mut dyn Bench) {
    let id = new_job(bench);
    let mut attempts = vec![odd::attempt(1, 1), odd::attempt(2, 2), attempt(3)];
    attempts.push(Attempt { report: Some(ReportHash([0; 16])), error: Some(String::new()), ..attempt(4) });
    let nothing = Before { retry_count: 0, lease_losses: 0, verify: false, error: None };
    attempts.push(Attempt { before: Some(nothing), ..attempt(5) });
    let written: Vec<(JobId, Attempt)> = attempts.iter().map(|attempt| (id, attempt.clone())).collect();
    put(bench, &written);
    assert_eq!(kept(bench, id), attempts);
    bench.reopen();
    assert_eq!(kept(bench, id), attempts);
}

/// Every way in which an attempt can end comes back.
pub fn every_end_of_an_attempt_comes_back(bench: &mut dyn Bench) {
    let mut ends = vec![
        AttemptEnd::Completed,
        AttemptEnd::Released,
        AttemptEnd::LeaseExpired,
        AttemptEnd::TimedOut,
        AttemptEnd::Cancelled,
        AttemptEnd::Forced,
    ];
    ends.extend(ErrorClass::ALL.map(AttemptEnd::Failed));
    let id = new_job(bench);
    let attempts: Vec<Attempt> = (1..).zip(ends).map(|(seq, end)| Attempt { end, ..attempt(seq) }).collect();
    for attempt in &attempts {
        put(bench, &[(id, attempt.clone())]);
    }
    assert_eq!(kept(bench, id), attempts);
}

/// Attempts of several jobs do not mix, come in the order of the question and by age, and a job may have none.
pub fn attempts_come_by_job_and_by_age(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job(), job(), job()]));
    let id = |index: usize| rows[index].job.id;
    let of = |index: usize, seq: u32| (id(index), odd::attempt(seq, seq));
    put(bench, &[of(0, 1), of(1, 1), of(0, 2)]);
    put(bench, &[of(1, 2), of(0, 3)]);
    let asked = [id(1), id(2), JobId(id(2).0 + 9), id(0), id(1)];
    let found = undo(bench, |tx| tx.attempts(&asked).expect("attempts are read"));
    let found: Vec<Vec<u32>> = found.iter().map(|attempts| seqs(attempts)).collect();
    assert_eq!(found, [vec![1, 2], vec![], vec![], vec![1, 2, 3], vec![1, 2]]);
}

/// An attempt with a `seq` that is there takes its place: a late report in the place of the loss.
pub fn an_attempt_with_the_same_seq_takes_its_place(bench: &mut dyn Bench) {
    let id = new_job(bench);
    put(bench, &[(id, attempt(1)), (id, odd::attempt(2, 1)), (id, attempt(3))]);
    write(bench, |tx| {
        tx.put_attempts(&[(id, attempt(2))]).expect("attempts are written");
        let found = tx.attempts(&[id]).expect("attempts are read").remove(0);
        assert_eq!(found, [attempt(1), attempt(2), attempt(3)]);
    });
    put(bench, &[(id, odd::attempt(2, 9)), (id, attempt(4))]);
    bench.reopen();
    assert_eq!(kept(bench, id), [attempt(1), odd::attempt(2, 9), attempt(3), attempt(4)]);
}

/// The first 10 and the last 90 are kept, one by one or many at once.
pub fn the_first_10_and_the_last_90_attempts_are_kept(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job(), job(), job()]));
    let id = |index: usize| rows[index].job.id;
    for from in (1..=120).step_by(40) {
        let some: Vec<_> = (from..from + 40).map(|seq| (id(0), attempt(seq))).collect();
        put(bench, &some);
    }
    let all: Vec<_> = (1..=101).map(|seq| (id(1), attempt(seq))).collect();
    put(bench, &all);
    let hundred: Vec<_> = (1..=100).map(|seq| (id(2), attempt(seq))).collect();
    put(bench, &hundred);
    assert_eq!(seqs(&kept(bench, id(0))), (1..=10).chain(31..=120).collect::<Vec<u32>>());
    assert_eq!(seqs(&kept(bench, id(1))), (1..=10).chain(12..=101).collect::<Vec<u32>>());
    assert_eq!(seqs(&kept(bench, id(2))), (1..=100).collect::<Vec<u32>>());
    put(bench, &[(id(0), attempt(121)), (id(0), odd::attempt(120, 3)), (id(0), odd::attempt(10, 4))]);
    let found = kept(bench, id(0));
    assert_eq!(seqs(&found), (1..=10).chain(32..=121).collect::<Vec<u32>>());
    assert_eq!((&found[9], &found[98]), (&odd::attempt(10, 4), &odd::attempt(120, 3)));
}

/// A snapshot pages through a history behind a `seq`.
pub fn a_history_is_read_page_by_page(bench: &mut dyn Bench) {
    let id = new_job(bench);
    let attempts: Vec<_> = (1..=25).map(|seq| (id, attempt(seq))).collect();
    put(bench, &attempts);
    let page = |bench: &mut dyn Bench, after: u32, limit: usize| {
        let rows = read(bench, |view| view.attempts(id, after, limit).expect("attempts are read"));
        rows.iter().map(|row| row.attempt.seq).collect::<Vec<_>>()
    };
    assert_eq!(page(bench, 0, 10), (1..=10).collect::<Vec<_>>());
    assert_eq!(page(bench, 10, 10), (11..=20).collect::<Vec<_>>());
    assert_eq!(page(bench, 20, 10), (21..=25).collect::<Vec<_>>());
    assert_eq!(page(bench, 25, 10), Vec::<u32>::new());
    assert_eq!(page(bench, 3, 0), Vec::<u32>::new());
    let nobody = read(bench, |view| view.attempts(JobId(id.0 + 5), 0, 10).expect("attempts are read"));
    assert_eq!(nobody, []);
}

/// Refused calls are counted on their attempt, the last is kept, and a report that takes a loss's place leaves them.
pub fn refused_calls_are_noted_on_their_attempt(bench: &mut dyn Bench) {
    let id = new_job(bench);
    let other = new_job(bench);
    put(bench, &[(id, attempt(1)), (id, attempt(2)), (other, attempt(1))]);
    write(bench, |tx| tx.note_refused(&[(id, 1, Call::Heartbeat, at(5))]).expect("a call is noted"));
    let calls =
        [(id, 1, Call::Complete, at(6)), (id, 1, Call::Fail, at(7)), (id, 2, Call::Checkpoint, at(8))];
    write(bench, |tx| tx.note_refused(&calls).expect("calls are noted"));
    put(bench, &[(id, odd::attempt(1, 5))]);
    bench.reopen();
    let row = |attempt: Attempt, refused_calls: u32, last_refused| AttemptRow {
        attempt,
        refused_calls,
        last_refused,
    };
    let expected = [
        row(odd::attempt(1, 5), 3, Some((Call::Fail, at(7)))),
        row(attempt(2), 1, Some((Call::Checkpoint, at(8)))),
    ];
    assert_eq!(shown(bench, id), expected);
    assert_eq!(shown(bench, other), [row(attempt(1), 0, None)]);
}

/// A call that belongs to no attempt in the history is not noted, and no error.
pub fn refused_calls_of_unknown_attempts_are_dropped(bench: &mut dyn Bench) {
    let id = new_job(bench);
    put(bench, &[(id, attempt(1))]);
    let calls = [(id, 7, Call::Heartbeat, at(5)), (JobId(id.0 + 5), 1, Call::Heartbeat, at(5))];
    write(bench, |tx| tx.note_refused(&calls).expect("nothing is noted"));
    assert_eq!(shown(bench, id), [AttemptRow { attempt: attempt(1), refused_calls: 0, last_refused: None }]);
}

/// Every call that a worker can make and every action of an operator comes back by its own number.
pub fn every_call_comes_back(bench: &mut dyn Bench) {
    let id = new_job(bench);
    let calls = [
        Call::Claim,
        Call::Heartbeat,
        Call::Checkpoint,
        Call::Complete,
        Call::Fail,
        Call::Release,
        Call::Cancel,
        Call::Retry,
        Call::Discard,
        Call::ForceFail,
        Call::Delete,
        Call::Replace,
        Call::Time,
        Call::Supersede,
        Call::Unblock,
        Call::EffectBegin,
        Call::EffectFinish,
        Call::EffectAbort,
    ];
    let actions: Vec<ActionRow> = (1..)
        .zip(calls)
        .map(|(n, call)| ActionRow { job: id, at: at(n), call, version: 100 + n, text: None })
        .collect();
    write(bench, |tx| tx.append_actions(&actions).expect("actions are written"));
    assert_eq!(read(bench, |view| view.actions(id).expect("actions are read")), actions);
    for (seq, call) in (1..).zip(calls) {
        put(bench, &[(id, attempt(seq))]);
        write(bench, |tx| tx.note_refused(&[(id, seq, call, at(9))]).expect("a call is noted"));
    }
    let noted: Vec<Call> = shown(bench, id).iter().filter_map(|row| Some(row.last_refused?.0)).collect();
    assert_eq!(noted, calls);
}

/// Actions come oldest first, those of one moment in the order in which they were done, and by job.
pub fn actions_come_in_the_order_in_which_they_were_done(bench: &mut dyn Bench) {
    let (id, other) = (new_job(bench), new_job(bench));
    let action = |job: JobId, ms: i64, version: i64, text: Option<&str>| ActionRow {
        job,
        at: at(ms),
        call: Call::Retry,
        version,
        text: text.map(str::to_owned),
    };
    let done = [
        action(id, 1, 2, Some("first 😀\n\"quoted\"")),
        action(other, 1, 2, None),
        action(id, 2, 3, None),
        action(id, 2, 4, Some("")),
        action(id, 2, 5, Some("last")),
    ];
    write(bench, |tx| tx.append_actions(&done[..2]).expect("actions are written"));
    bench.reopen();
    write(bench, |tx| tx.append_actions(&done[2..]).expect("actions are written"));
    let shown = |bench: &mut dyn Bench, id| read(bench, |view| view.actions(id).expect("actions are read"));
    let expected = [&done[..1], &done[2..]].concat();
    assert_eq!(shown(bench, id), expected);
    assert_eq!(shown(bench, other), done[1..2]);
    assert_eq!(shown(bench, JobId(other.0 + 5)), []);
}
