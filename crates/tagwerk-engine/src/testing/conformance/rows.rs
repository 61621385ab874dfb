//! What was written is what is read: every field, every value, every byte.

use tagwerk_core::idempotency::{OnDuplicate, OnMismatch, Scope};
use tagwerk_core::{
    Cause, Failure, FailureClass, Jitter, JobId, LeaseBits, OnUnknown, Reason, Status, Timestamp,
};

use super::steps::{
    add, add_one, at, ids, job, load, plain_detail, prepare, priority, put, read, requeued, settled, started,
    stored, undo, write,
};
use super::{Bench, odd};
use crate::row::{Detail, FullJob, JobRow, Note, Progress, Subject};
use crate::store::{Found, Insert, Listed, OldPayload, PayloadWrite};

/// Inserts rows and expects them back, at once, after the commit, after a reopen, and in a snapshot.
fn round_trip(bench: &mut dyn Bench, make: impl Fn(usize, Insert) -> Insert, count: usize) {
    let inserts = write(bench, |tx| {
        let drafts = prepare(tx, &vec![job(); count]);
        let inserts: Vec<Insert> =
            drafts.into_iter().enumerate().map(|(index, draft)| make(index, draft)).collect();
        tx.insert(&inserts).expect("jobs are inserted");
        for insert in &inserts {
            assert_eq!(load(tx, insert.row.job.id).as_ref(), Some(&insert.row), "in the same transaction");
        }
        inserts
    });
    expect_all(bench, &inserts, "after the commit");
    bench.reopen();
    expect_all(bench, &inserts, "after a reopen");
}

fn expect_all(bench: &mut dyn Bench, inserts: &[Insert], when: &str) {
    for Insert { row, detail } in inserts {
        let id = row.job.id;
        undo(bench, |tx| {
            assert_eq!(load(tx, id).as_ref(), Some(row), "hot part {when}");
            let found = tx.details(&[id]).expect("details are read").remove(0);
            assert_eq!(found, Some(Ok(detail.clone())), "cold part {when}");
        });
        let full = FullJob { row: row.clone(), detail: detail.clone() };
        let seen = read(bench, |view| view.jobs(&[id]).expect("jobs are read").remove(0));
        assert_eq!(seen, Some(Listed::Job(Box::new(full))), "in a snapshot {when}");
    }
}

/// F119: each field has a column of its own, in the hot and in the cold part.
pub fn f119_every_field_comes_back_in_its_own_place(bench: &mut dyn Bench) {
    let make = |index: usize, draft: Insert| {
        let salt = u32::try_from(index).expect("few rows") + 1;
        let running = odd::running(draft.row.job.id, draft.row.lane, salt);
        let row = if index.is_multiple_of(2) { running } else { odd::in_review(&running, salt) };
        Insert { row, detail: odd::detail(salt) }
    };
    round_trip(bench, make, 4);
}

/// F119: a change writes every field, from nothing to everything, to other values, and back to nothing.
pub fn f119_a_change_writes_every_field(bench: &mut dyn Bench) {
    let plain = write(bench, |tx| add_one(tx, job()));
    let full = odd::running(plain.job.id, plain.lane.clone(), 1);
    let other = odd::running(plain.job.id, plain.lane.clone(), 2);
    let review = odd::in_review(&other, 3);
    let mut before = plain.clone();
    for after in [full, other, review, plain] {
        write(bench, |tx| {
            put(tx, &before, &after);
            assert_eq!(load(tx, after.job.id).as_ref(), Some(&after), "in the same transaction");
        });
        assert_eq!(stored(bench, after.job.id).as_ref(), Some(&after), "after the commit");
        before = after;
    }
}

/// F119: one flag at a time, so that two flags that share a column cannot go unseen.
pub fn f119_each_flag_stands_alone(bench: &mut dyn Bench) {
    let flags: [fn(&mut JobRow) -> &mut bool; 7] = [
        |row| &mut row.job.started,
        |row| &mut row.job.verify,
        |row| &mut row.job.handles_verify,
        |row| &mut row.job.cancel_requested,
        |row| &mut row.job.acted,
        |row| &mut row.job.newest_lost,
        |row| &mut row.job.earlier_lost,
    ];
    let make = |index: usize, mut draft: Insert| {
        *flags[index](&mut draft.row) = true;
        draft
    };
    round_trip(bench, make, flags.len());
}

/// What was not given is not there: no zero, no empty text, no default.
pub fn absent_fields_stay_absent_and_empty_ones_stay_empty(bench: &mut dyn Bench) {
    let make = |index: usize, draft: Insert| match index {
        0 => Insert { detail: plain_detail(String::from("null")), ..draft },
        1 => empty_texts(draft),
        2 => {
            let mut draft = zeros(draft);
            draft.row.note.progress = Some(Progress::default());
            draft
        }
        _ => zeros(draft),
    };
    round_trip(bench, make, 4);
}

fn empty_texts(mut draft: Insert) -> Insert {
    let empty = || Some(String::new());
    draft.row.job.error = empty();
    draft.row.note = Note {
        result: empty(),
        checkpoint: empty(),
        progress: Some(Progress { done: None, total: None, message: empty() }),
    };
    draft.detail.subject = Some(Subject { kind: String::new(), id: String::new(), version: None });
    draft.detail.correlation_id = empty();
    draft.detail.traceparent = empty();
    draft.detail.key = empty();
    draft
}

fn zeros(mut draft: Insert) -> Insert {
    draft.row.job.max_age_ms = Some(0);
    draft.row.job.expires_at = Some(Timestamp::EPOCH);
    draft.row.note.progress = Some(Progress { done: Some(0), total: Some(0), message: None });
    draft.detail.ttl_ms = Some(0);
    draft.detail.lease_ms = Some(0);
    draft.detail.timeout_ms = Some(0);
    draft.detail.retry.base_ms = Some(0);
    draft.detail.retry.factor = Some(0.0);
    draft.detail.retry.cap_ms = Some(0);
    draft
}

/// F145: numbers and times keep all their bits.
pub fn f145_extreme_numbers_keep_all_their_bits(bench: &mut dyn Bench) {
    let make = |_: usize, draft: Insert| {
        let mut row = odd::running(draft.row.job.id, draft.row.lane, 1);
        row.job.version = i64::MAX - 1;
        row.job.attempt = u32::MAX;
        row.job.leases = u32::MAX - 1;
        row.job.release_count = u32::MAX - 2;
        row.job.available_at = Timestamp::MAX;
        row.job.created_at = Timestamp::from_millis(-1);
        row.job.max_age_ms = Some(i64::MAX);
        row.priority = priority(100);
        row.payload_bytes = u32::MAX;
        row.note.progress = Some(Progress { done: Some(i64::MIN), total: Some(i64::MAX), message: None });
        let lease = row.job.lease.as_mut().expect("the row is running");
        lease.bits = LeaseBits(u64::MAX);
        lease.expires_at = Timestamp::MAX;
        let mut detail = odd::detail(1);
        detail.retry.factor = Some(0.1 + 0.2);
        detail.ttl_ms = Some(i64::MAX);
        Insert { row, detail }
    };
    round_trip(bench, make, 1);
}

/// Lease bits use all 64 bits, also those that a signed number calls negative.
pub fn lease_bits_keep_all_64_bits(bench: &mut dyn Bench) {
    let bits = [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, (1 << 53) + 1];
    let make = |index: usize, mut draft: Insert| {
        let mut row = started(&draft.row, at(60_000));
        row.job.lease.as_mut().expect("the row is running").bits = LeaseBits(bits[index]);
        draft.row = row;
        draft
    };
    round_trip(bench, make, bits.len());
}

/// Every value of every closed set has a number of its own in the store.
pub fn every_value_of_every_closed_set_comes_back(bench: &mut dyn Bench) {
    let make = |index: usize, mut draft: Insert| {
        let status = Status::ALL[index % Status::ALL.len()];
        draft.row = match status {
            Status::Pending => draft.row,
            Status::Running => started(&draft.row, at(60_000)),
            rest => settled(&draft.row, rest, at(1)),
        };
        draft.row.job.failure = (status == Status::Failed).then(|| failure(index / Status::ALL.len()));
        draft.row.job.on_unknown = cycle(OnUnknown::ALL, index);
        draft.detail.scope = Some(cycle(Scope::ALL, index));
        draft.detail.on_duplicate = Some(cycle(OnDuplicate::ALL, index));
        draft.detail.on_mismatch = Some(cycle(OnMismatch::ALL, index));
        draft.detail.retry.jitter = Some(cycle(Jitter::ALL, index));
        draft
    };
    let failures = FailureClass::ALL.len() * Reason::ALL.len() * Cause::ALL.len();
    round_trip(bench, make, failures * Status::ALL.len());
}

fn failure(index: usize) -> Failure {
    let (classes, reasons) = (FailureClass::ALL.len(), Reason::ALL.len());
    Failure {
        class: cycle(FailureClass::ALL, index),
        reason: cycle(Reason::ALL, index / classes),
        cause: cycle(Cause::ALL, index / classes / reasons),
    }
}

fn cycle<T: Copy>(values: &[T], index: usize) -> T {
    values[index % values.len()]
}

/// F106, F107, F108: a payload is a text, not a value: nothing is parsed, sorted, rounded or trimmed.
pub fn f106_f107_f108_payloads_come_back_byte_for_byte(bench: &mut dyn Bench) {
    let payloads = payloads();
    let make = |index: usize, mut draft: Insert| {
        draft.row.payload_bytes = u32::try_from(payloads[index].len()).expect("payloads are small");
        draft.detail.payload.clone_from(&payloads[index]);
        draft
    };
    round_trip(bench, make, payloads.len());
}

fn payloads() -> Vec<String> {
    let mut texts: Vec<String> = [
        r#"{"id":899999999999999990,"x":1.10,"e":1E400,"b":123456789012345678901234567890,"a":1}"#,
        r#"{"z":1,"a":{"y":2,"b":3},"z":4}"#,
        r#"{"nul":"\u0000","lone":"\ud800","slash":"\/","upper":"\u00E9","lower":"\u00e9"}"#,
        " {\t\"spaces\" :\r\n [ ] } \n",
        "1E400",
        "-0",
        "-0.0",
        "1.0",
        "null",
        "\"\"",
        "{}",
        "\"Grüße, 世界, 😀, \u{feff}, \u{2028}, a\u{301}\"",
        "\"'; drop table job; --\"",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push(format!("{}{}", "[".repeat(128), "]".repeat(128)));
    texts.push(format!("\"{}\"", "0123456789ä".repeat(100_000)));
    texts
}

/// F105: what a worker says comes back as it was said.
pub fn f105_results_checkpoints_and_errors_come_back_byte_for_byte(bench: &mut dyn Bench) {
    let texts = payloads();
    let make = |index: usize, mut draft: Insert| {
        let text = &texts[index];
        draft.row.job.error = Some(format!("{text} \\u0000"));
        draft.row.note.result = Some(text.clone());
        draft.row.note.checkpoint = Some(format!("[{text}]"));
        draft
    };
    round_trip(bench, make, texts.len());
}

/// A note that is taken off again is gone, and one field of it can go alone.
pub fn parts_of_a_note_come_and_go_by_themselves(bench: &mut dyn Bench) {
    let mut before = write(bench, |tx| add_one(tx, job()));
    let text = |text: &str| Some(text.to_owned());
    let notes = [
        Note { checkpoint: text("[1]"), ..Note::default() },
        Note { checkpoint: text("[2]"), progress: Some(Progress::default()), ..Note::default() },
        Note {
            result: text("3"),
            progress: Some(Progress { done: Some(1), ..Progress::default() }),
            checkpoint: None,
        },
        Note { result: text("4"), ..Note::default() },
        Note::default(),
    ];
    for note in notes {
        let after = JobRow { note, ..before.clone() };
        write(bench, |tx| put(tx, &before, &after));
        assert_eq!(stored(bench, after.job.id).as_ref(), Some(&after));
        before = after;
    }
}

/// Rows come in the order in which they were asked for, also twice, with a gap for each that is not there.
pub fn reads_answer_in_the_order_of_the_question(bench: &mut dyn Bench) {
    let inserts = write(bench, |tx| {
        let inserts = prepare(tx, &[job().payload("1"), job().payload("2"), job().payload("3")]);
        tx.insert(&inserts).expect("jobs are inserted");
        inserts
    });
    let id = |index: usize| inserts[index].row.job.id;
    let asked = [id(2), JobId(id(2).0 + 1), id(0), id(2), JobId(0), JobId(-5), id(1)];
    let order = [Some(2), None, Some(0), Some(2), None, None, Some(1)];
    let rows: Vec<Found<JobRow>> = order.map(|at| at.map(|at: usize| Ok(inserts[at].row.clone()))).to_vec();
    let details: Vec<Found<Detail>> = order.map(|at| at.map(|at| Ok(inserts[at].detail.clone()))).to_vec();
    undo(bench, |tx| {
        assert_eq!(tx.load(&asked).expect("rows are read"), rows);
        assert_eq!(tx.details(&asked).expect("details are read"), details);
        assert!(tx.load(&[]).expect("nothing is read").is_empty());
    });
    let seen = read(bench, |view| view.jobs(&asked).expect("jobs are read"));
    let full = |at: usize| {
        Listed::Job(Box::new(FullJob { row: inserts[at].row.clone(), detail: inserts[at].detail.clone() }))
    };
    assert_eq!(seen, order.map(|at| at.map(full)));
}

/// Many rows in one call: no limit of bound parameters, no quadratic cost.
pub fn thousands_of_rows_go_through_one_call(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &vec![job(); 5_000]));
    let asked = ids(&rows);
    let found = undo(bench, |tx| tx.load(&asked).expect("rows are read"));
    assert!(found.iter().flatten().flatten().eq(rows.iter()));
    let changes: Vec<(JobRow, JobRow)> =
        rows.iter().map(|row| (row.clone(), started(row, at(60_000)))).collect();
    write(bench, |tx| super::steps::put_all(tx, &changes));
    let found = undo(bench, |tx| tx.load(&asked).expect("rows are read"));
    assert!(found.iter().flatten().flatten().eq(changes.iter().map(|(_, after)| after)));
    write(bench, |tx| tx.erase(&asked).expect("jobs are erased"));
    assert_eq!(undo(bench, |tx| tx.load(&asked).expect("rows are read")), vec![None; 5_000]);
}

/// A job can go through several states in one transaction: what is read is what was written last.
pub fn several_changes_of_a_row_in_one_transaction_add_up(bench: &mut dyn Bench) {
    let last = write(bench, |tx| {
        let first = add_one(tx, job());
        let second = started(&first, at(60_000));
        put(tx, &first, &second);
        let third = requeued(&second, at(5));
        put(tx, &second, &third);
        let fourth = settled(&third, Status::Cancelled, at(6));
        put(tx, &third, &fourth);
        assert_eq!(load(tx, first.job.id).as_ref(), Some(&fourth));
        fourth
    });
    assert_eq!(stored(bench, last.job.id), Some(last));
}

/// A new payload takes the place of the old one, byte for byte; the row's own size is written by `put`.
pub fn a_new_payload_takes_the_place_of_the_old_one(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job().payload("[1]")));
    let id = row.job.id;
    for (text, old) in [(r#"{"b":1,"a":1E400}"#, OldPayload::Forget), ("[ 2 ]", OldPayload::Keep)] {
        let before = stored(bench, id).expect("the job is there");
        let size = u32::try_from(text.len()).expect("payloads are small");
        let after = JobRow { payload_bytes: size, ..before.clone() };
        write(bench, |tx| {
            let payload = PayloadWrite { job: id, payload: text.to_owned(), old, at: at(1) };
            tx.put_payloads(&[payload]).expect("a payload is written");
            put(tx, &before, &after);
        });
        bench.reopen();
        assert_eq!(stored(bench, id).as_ref(), Some(&after));
        let detail = undo(bench, |tx| tx.details(&[id]).expect("details are read").remove(0));
        assert_eq!(detail, Some(Ok(plain_detail(text.to_owned()))));
    }
}
