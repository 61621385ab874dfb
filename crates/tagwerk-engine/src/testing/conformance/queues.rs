//! What is said about queues: pauses, bounds, drains, and how deep they are.

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{Drain, Pause, QueueSettings, Reserve, Timestamp};

use super::Bench;
use super::steps::{
    add, add_one, all, at, ids, job, look, of_queues, of_types, owned, peek, priority, put, read, requeued,
    started, take, undo, wish, write,
};
use crate::row::{Counter, Lane, LaneId, QueueRow, Tally};
use crate::store::{Filter, Tx};

fn said(bench: &mut dyn Bench) -> Vec<QueueRow> {
    let in_tx = undo(bench, |tx| tx.queue_rows().expect("rows are read"));
    assert_eq!(read(bench, |view| view.queue_rows().expect("rows are read")), in_tx);
    in_tx
}

fn say(tx: &mut dyn Tx, row: &QueueRow) {
    tx.put_queue(row).expect("a row is written");
}

fn because(reason: &str, ms: i64) -> Pause {
    Pause { reason: reason.to_owned(), by: None, at: at(ms) }
}

fn paused(name: &str) -> QueueRow {
    QueueRow { paused: vec![because("a test", 0)], ..QueueRow::plain(name) }
}

/// Everything that can be said.
fn odd(name: &str, salt: i64) -> QueueRow {
    let small = u32::try_from(salt).expect("salts are small") * 100;
    QueueRow {
        name: name.to_owned(),
        settings: QueueSettings {
            max_running: Some(small + 2),
            reserve: Some(Reserve { slots: small + 1, from_priority: priority(42) }),
            max_depth: Some(1_000_000_000 + salt.unsigned_abs()),
        },
        paused: vec![
            Pause { by: Some(format!("ann {salt} 😀")), ..because("zebra", 5) },
            because("a deploy", 5),
            because("the clock went back", 3),
        ],
        draining: Some(Drain { reason: Some("moving".to_owned()), by: Some("bob".to_owned()), at: at(7) }),
    }
}

/// Every field comes back, in name order, reasons in the order in which they came.
pub fn f095_what_is_said_about_queues_comes_back(bench: &mut dyn Bench) {
    assert_eq!(said(bench), []);
    let bare_drain = Drain { reason: None, by: None, at: at(1) };
    let bound = QueueSettings { max_depth: Some(1), ..QueueSettings::default() };
    let rows = [
        odd("b", 1),
        QueueRow { draining: Some(bare_drain), ..QueueRow::plain("Z") },
        QueueRow { settings: bound, ..QueueRow::plain("a") },
        paused("default"),
    ];
    for row in &rows {
        write(bench, |tx| say(tx, row));
    }
    bench.reopen();
    assert_eq!(said(bench), [&rows[1], &rows[2], &rows[0], &rows[3]].map(Clone::clone));
}

/// A row is written over the one before as a whole; one that says nothing is left out, and its queue stays known.
pub fn what_is_said_is_overwritten_as_a_whole(bench: &mut dyn Bench) {
    write(bench, |tx| say(tx, &odd("q", 1)));
    undo(bench, |tx| {
        say(tx, &QueueRow::plain("q"));
        assert_eq!(tx.queue_rows().expect("rows are read"), []);
    });
    assert_eq!(said(bench), [odd("q", 1)]);
    write(bench, |tx| say(tx, &paused("q")));
    assert_eq!(said(bench), [paused("q")]);
    write(bench, |tx| say(tx, &QueueRow::plain("q")));
    bench.reopen();
    assert_eq!(said(bench), []);
    assert_eq!(read(bench, |view| view.queues().expect("queues are read")), [("q".to_owned(), None)]);
}

/// F095, F096: jobs of a paused queue are given to nobody, however they are asked for and however they came there; those of
/// other queues are, in their order.
pub fn f096_nothing_of_a_paused_queue_is_claimable(bench: &mut dyn Bench) {
    let drafts = [
        job().queue("held").priority(30),
        job().queue("open").kind("t1"),
        job().queue("held").kind("t1"),
        job().queue("open").priority(20),
    ];
    let rows = write(bench, |tx| {
        let rows = add(tx, &drafts);
        say(tx, &paused("held"));
        assert_eq!(look(tx, at(0), &[wish(&all(), 9)])[0].len(), 2, "in the same transaction");
        let changes = [&rows[3], &rows[1]].map(|row| (row.clone(), started(row, at(60_000))));
        super::steps::put_all(tx, &changes);
        for (_, after) in &changes {
            put(tx, after, &requeued(after, at(0)));
        }
        rows
    });
    bench.reopen();
    let open = [rows[3].job.id, rows[1].job.id];
    let both =
        Filter { queues: Some(owned(&["held", "open"])), types: Some(owned(&["work", "t1"])), space: None };
    assert_eq!(peek(bench, at(0), &all()), open);
    assert_eq!(peek(bench, at(0), &both), open);
    assert_eq!(peek(bench, at(0), &of_types(&["t1"])), [rows[1].job.id]);
    assert_eq!(peek(bench, at(0), &of_queues(&["held"])), []);
    // A requeue and a new job, one in a lane that is new.
    write(bench, |tx| {
        let running = started(&rows[0], at(1));
        put(tx, &rows[0], &running);
        put(tx, &running, &requeued(&running, at(0)));
        add(tx, &[job().queue("held"), job().queue("held").kind("new").priority(99)]);
    });
    assert_eq!(peek(bench, at(0), &all()), open);
    assert_eq!(peek(bench, at(0), &of_types(&["new"])), []);
    write(bench, |tx| {
        say(tx, &QueueRow::plain("held"));
        assert_eq!(ids(&take(tx, at(0), wish(&of_types(&["new"]), 9))).len(), 1, "at once");
    });
    assert_eq!(peek(bench, at(0), &of_queues(&["held"])).len(), 3);
    assert_eq!(peek(bench, at(0), &all()).len(), 5);
}

/// A pause holds jobs with limits and fair keys as well, also those that wait for a limit, and their due times with them.
pub fn f096_limits_and_fair_keys_do_not_get_around_a_pause(bench: &mut dyn Bench) {
    let slot = LimitSettings { max_running: Some(1), ..LimitSettings::default() };
    let drafts = [
        job().queue("held").limit("one"),
        job().queue("held").fair("tenant"),
        job().queue("open").limit("one"),
        job().queue("open").fair("tenant"),
        job().queue("held").limit("one").due(at(5)),
    ];
    let rows = write(bench, |tx| {
        tx.put_limit("one", Some(&slot)).expect("a limit is written");
        let rows = add(tx, &drafts);
        say(tx, &paused("held"));
        rows
    });
    bench.reopen();
    let filters = [all(), of_queues(&["open", "held"]), of_types(&["work"])];
    for filter in &filters {
        assert_eq!(peek(bench, at(0), filter), [rows[2].job.id, rows[3].job.id], "{filter:?}");
    }
    assert_eq!(peek(bench, at(9), &of_queues(&["held"])), []);
    assert_eq!(undo(bench, |tx| tx.next_due(at(0), &of_queues(&["held"])).expect("a time is read")), None);
    write(bench, |tx| say(tx, &QueueRow::plain("held")));
    let held = peek(bench, at(0), &of_queues(&["held"]));
    assert_eq!(held, [rows[0].job.id, rows[1].job.id]);
}

/// A pause and a resume that roll back have never been.
pub fn a_pause_that_rolls_back_holds_nothing(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job().queue("q")));
    undo(bench, |tx| {
        say(tx, &paused("q"));
        assert_eq!(look(tx, at(0), &[wish(&all(), 9)])[0], []);
    });
    assert_eq!(peek(bench, at(0), &all()), [row.job.id]);
    write(bench, |tx| say(tx, &paused("q")));
    undo(bench, |tx| say(tx, &QueueRow::plain("q")));
    assert_eq!(peek(bench, at(0), &all()), []);
    bench.reopen();
    assert_eq!(peek(bench, at(0), &of_queues(&["q"])), []);
}

/// The next due time is one at which something can be handed out.
pub fn the_next_due_time_passes_over_paused_queues(bench: &mut dyn Bench) {
    write(bench, |tx| {
        add(tx, &[job().queue("held").due(at(5)), job().queue("open").due(at(9)), job().queue("held")]);
        say(tx, &paused("held"));
    });
    let next = |bench: &mut dyn Bench, filter: &Filter| -> Option<Timestamp> {
        undo(bench, |tx| tx.next_due(at(0), filter).expect("a time is read"))
    };
    assert_eq!(next(bench, &all()), Some(at(9)));
    assert_eq!(next(bench, &of_types(&["work"])), Some(at(9)));
    assert_eq!(next(bench, &of_queues(&["held"])), None);
    write(bench, |tx| say(tx, &QueueRow::plain("held")));
    assert_eq!(next(bench, &all()), Some(at(5)));
    assert_eq!(next(bench, &of_queues(&["held"])), Some(at(5)));
}

/// The depth of a queue is what its ledger says is pending or running, lane by lane, also in lanes that are new.
pub fn the_depth_of_a_queue_is_in_its_ledger(bench: &mut dyn Bench) {
    let tally = |pending, running, failed| {
        let mut tally = Tally::default();
        tally.add(Counter::Pending, pending);
        tally.add(Counter::Running, running);
        tally.add(Counter::Failed, failed);
        tally
    };
    let add_to = |tx: &mut dyn Tx, lane: &Lane, tally| {
        tx.add_ledger(&[(lane.id, tally)]).expect("the ledger is written");
    };
    let depth = |tx: &mut dyn Tx, queue: &str| -> Vec<(LaneId, i64)> {
        let mut depth = tx.depth(queue).expect("a depth is read");
        depth.sort_unstable();
        depth
    };
    let lanes = write(bench, |tx| {
        let lanes = tx.intern(&[("q", "a"), ("q", "b"), ("other", "a")]).expect("lanes are interned");
        assert_eq!(depth(tx, "q"), [(lanes[0].id, 0), (lanes[1].id, 0)]);
        add_to(tx, &lanes[0], tally(3, 4, 100));
        add_to(tx, &lanes[2], tally(1_000, 0, 0));
        lanes
    });
    bench.reopen();
    undo(bench, |tx| {
        add_to(tx, &lanes[0], tally(-2, 1, 1));
        let new = tx.intern(&[("q", "new")]).expect("a lane is interned").remove(0);
        assert_eq!(depth(tx, "q"), [(lanes[0].id, 6), (lanes[1].id, 0), (new.id, 0)]);
        assert_eq!(depth(tx, "nobody"), []);
    });
    undo(bench, |tx| assert_eq!(depth(tx, "q"), [(lanes[0].id, 7), (lanes[1].id, 0)]));
}
