//! What statistics and explanations read: ready lanes, places in the line, running rows, health.

use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{
    add, add_started, at, ids, job, put, read, requeued, settled, started, take, wish, write,
};
use crate::row::JobRow;
use crate::store::LaneReady;

fn ready(bench: &mut dyn Bench, now: i64) -> Vec<LaneReady> {
    let mut lanes = read(bench, |view| view.ready(at(now)).expect("lanes are read"));
    lanes.sort_by_key(|ready| ready.lane.id);
    lanes
}

/// Per lane with ready jobs the due time of the oldest, over all priorities; lanes without ready jobs are left out.
pub fn the_oldest_ready_job_of_each_lane_is_found(bench: &mut dyn Bench) {
    assert_eq!(ready(bench, 0), []);
    let drafts = [
        job().kind("a").priority(20).due(at(-5)),
        job().kind("a").priority(0).due(at(-9)),
        job().kind("a").priority(10).due(at(-7)),
        job().kind("b").priority(10).due(at(3)),
        job().kind("b").priority(0).due(at(5)),
        job().kind("c"),
        job().kind("a").queue("other").due(at(0)),
    ];
    let rows = write(bench, |tx| add(tx, &drafts));
    write(bench, |tx| put(tx, &rows[5], &started(&rows[5], at(60_000))));
    let expect = |pairs: &[(usize, i64)]| {
        let mut lanes: Vec<LaneReady> = pairs
            .iter()
            .map(|(index, due)| LaneReady { lane: rows[*index].lane.clone(), oldest_due: at(*due) })
            .collect();
        lanes.sort_by_key(|ready| ready.lane.id);
        lanes
    };
    assert_eq!(ready(bench, -8), expect(&[(0, -9)]));
    assert_eq!(ready(bench, 0), expect(&[(0, -9), (6, 0)]));
    assert_eq!(ready(bench, 3), expect(&[(0, -9), (3, 3), (6, 0)]));
    write(bench, |tx| put(tx, &rows[1], &settled(&rows[1], Status::Cancelled, at(1))));
    assert_eq!(ready(bench, 5), expect(&[(0, -7), (3, 3), (6, 0)]));
    write(bench, |tx| put(tx, &rows[3], &requeued(&rows[3], at(99))));
    bench.reopen();
    assert_eq!(ready(bench, 5), expect(&[(0, -7), (3, 5), (6, 0)]));
}

/// How many ready jobs of the same queue come before a pending one, over all types, up to a cap.
pub fn the_place_in_the_line_is_counted_in_claim_order(bench: &mut dyn Bench) {
    let drafts = [
        job().priority(20).due(at(0)),
        job().priority(20).due(at(50)),
        job().kind("b").due(at(-5)),
        job().due(at(-5)),
        job().due(at(0)),
        job().due(at(-9)).queue("other"),
        job().due(at(30)),
        job().due(at(-9)),
        job().priority(0).due(at(-99)),
    ];
    let rows = write(bench, |tx| add(tx, &drafts));
    write(bench, |tx| put(tx, &rows[7], &started(&rows[7], at(60_000))));
    let ahead = |bench: &mut dyn Bench, row: &JobRow, now: i64, cap: usize| {
        read(bench, |view| view.ahead(row, at(now), cap).expect("rows are counted"))
    };
    let places = [(0, 0), (1, 1), (2, 1), (3, 2), (4, 3), (5, 0), (6, 4), (8, 4)];
    for (index, place) in places {
        assert_eq!(ahead(bench, &rows[index], 0, 100), place, "job {index}");
    }
    assert_eq!(ahead(bench, &rows[8], 50, 100), 6);
    assert_eq!(ahead(bench, &rows[8], 50, 4), 4);
    assert_eq!(ahead(bench, &rows[8], 50, 0), 0);
    assert_eq!(ahead(bench, &rows[4], -5, 100), 2);
}

/// Running rows in id order, page by page.
pub fn running_rows_are_read_page_by_page(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| {
        let first = add_started(tx, job(), at(90_000));
        add(tx, &[job()]);
        let second = add_started(tx, job().queue("q"), at(10_000));
        let done = add_started(tx, job(), at(10_000));
        put(tx, &done, &settled(&done, Status::Completed, at(1)));
        vec![first, second, add_started(tx, job(), at(50_000))]
    });
    let running = |bench: &mut dyn Bench, after: JobId, limit: usize| {
        read(bench, |view| view.running(after, limit).expect("rows are read"))
    };
    assert_eq!(running(bench, JobId(0), 9), rows);
    assert_eq!(running(bench, JobId(0), 2), rows[..2]);
    assert_eq!(running(bench, rows[1].job.id, 2), rows[2..]);
    assert_eq!(running(bench, rows[2].job.id, 2), []);
}

/// What a claim takes is running and no longer ready.
pub fn what_is_claimed_is_running_and_no_longer_ready(bench: &mut dyn Bench) {
    let rows = write(bench, |tx| add(tx, &[job(), job(), job()]));
    write(bench, |tx| take(tx, at(0), wish(&super::steps::all(), 2)));
    let running = read(bench, |view| view.running(JobId(0), 9).expect("rows are read"));
    assert_eq!(ids(&running), ids(&rows[..2]));
    assert_eq!(ready(bench, 0).len(), 1);
    let place = read(bench, |view| view.ahead(&rows[2], at(0), 9).expect("rows are counted"));
    assert_eq!(place, 0);
}

/// A store that was used as it should be is sound, and says what it is.
pub fn a_store_is_sound_and_says_what_it_is(bench: &mut dyn Bench) {
    write(bench, |tx| add(tx, &vec![job(); 100]));
    bench.reopen();
    read(bench, |view| {
        assert_eq!(view.integrity().expect("the store is checked"), Vec::<String>::new());
        let facts = view.facts().expect("facts are read");
        assert!(!facts.engine.is_empty());
        assert!(facts.schema >= 1);
    });
}

/// An empty store answers every question.
pub fn an_empty_store_answers_every_question(bench: &mut dyn Bench) {
    read(bench, |view| {
        let id = JobId(1);
        assert_eq!(view.jobs(&[id]).expect("jobs are read"), [None]);
        assert_eq!(view.attempts(id, 0, 9).expect("attempts are read"), []);
        assert_eq!(view.actions(id).expect("actions are read"), []);
        assert_eq!(view.ledger().expect("the ledger is read"), []);
        assert_eq!(view.counts().expect("rows are counted"), []);
        assert_eq!(view.ready(at(0)).expect("lanes are read"), []);
        assert_eq!(view.running(JobId(0), 9).expect("rows are read"), []);
        assert_eq!(view.key("k").expect("a key is read"), None);
        assert_eq!(view.types().expect("types are read"), []);
        assert_eq!(view.queues().expect("queues are read"), []);
        assert_eq!(view.served_until().expect("the mark is read"), None);
        assert_eq!(view.scan(JobId(0), 9).expect("rows are read"), []);
        let page = crate::store::ListQuery { limit: 9, ..crate::store::ListQuery::default() };
        assert_eq!(view.list(&page).expect("a list is read").rows, []);
    });
}
