//! Orders of ordering keys: who stands in them, and that claims pass over those whose turn it is not.

use tagwerk_core::{JobId, Status};

use super::Bench;
use super::steps::{
    add, add_one, add_settled, all, at, ids, job, load, look, peek, put, read, requeued, settled, started,
    stored, undo, wish, write,
};
use crate::row::JobRow;
use crate::store::Tx;

/// The row while it is not its turn.
fn without_turn(row: &JobRow) -> JobRow {
    let mut row = row.clone();
    row.order.as_mut().expect("it stands in an order").blocked = true;
    row
}

/// The row while it is its turn.
fn with_turn(row: &JobRow) -> JobRow {
    let mut row = row.clone();
    row.order.as_mut().expect("it stands in an order").blocked = false;
    row
}

/// The row after it has left its order.
fn outside(row: &JobRow) -> JobRow {
    JobRow { order: None, ..row.clone() }
}

fn block(tx: &mut dyn Tx, row: &JobRow) -> JobRow {
    let blocked = without_turn(row);
    put(tx, row, &blocked);
    blocked
}

/// Three jobs of key `k`, of which only the first is not blocked.
fn three(bench: &mut dyn Bench) -> [JobRow; 3] {
    write(bench, |tx| {
        let rows = add(tx, &[job().ordered("k"), job().ordered("k"), job().ordered("k")]);
        [rows[0].clone(), block(tx, &rows[1]), block(tx, &rows[2])]
    })
}

/// Lowest and open ids of one key.
fn order(tx: &mut dyn Tx, key: &str) -> (Option<JobId>, Vec<JobId>) {
    let rows = tx.orders(&[key]).expect("an order is read").remove(0);
    (rows.lowest.map(|row| row.job.id), ids(&rows.open))
}

/// A blocked job is pending, comes back as it was written, and is given to no claim and no due time before its turn.
pub fn a_blocked_job_is_passed_over_until_its_turn(bench: &mut dyn Bench) {
    let [first, second, third] = three(bench);
    bench.reopen();
    assert_eq!(stored(bench, second.job.id), Some(second.clone()));
    assert_eq!(peek(bench, at(10), &all()), [first.job.id]);
    write(bench, |tx| put(tx, &first, &outside(&settled(&first, Status::Cancelled, at(1)))));
    assert_eq!(peek(bench, at(10), &all()), []);
    assert_eq!(undo(bench, |tx| tx.next_due(at(-10), &all()).expect("a time")), None);
    write(bench, |tx| put(tx, &second, &with_turn(&second)));
    assert_eq!(peek(bench, at(10), &all()), [second.job.id]);
    assert_eq!(undo(bench, |tx| tx.next_due(at(-10), &all()).expect("a time")), Some(at(0)));
    let counts = read(bench, |view| view.counts().expect("rows are counted"));
    let counts: Vec<_> = counts.into_iter().map(|(_, status, n)| (status, n)).collect();
    assert_eq!(counts.len(), 2, "{counts:?}");
    assert!(counts.contains(&(Status::Pending, 2)) && counts.contains(&(Status::Cancelled, 1)));
    assert_eq!(stored(bench, third.job.id), Some(third));
}

/// Blocked rows are counted with the plain lane of their queue and type, whatever else makes them special.
pub fn blocked_rows_are_counted_by_class(bench: &mut dyn Bench) {
    let blocked = |bench: &mut dyn Bench| undo(bench, |tx| tx.blocked().expect("rows are counted"));
    assert_eq!(blocked(bench), []);
    let [first, second, third] = three(bench);
    let limited = write(bench, |tx| {
        let row = add_one(tx, job().limit("crm").ordered("k"));
        block(tx, &row)
    });
    let other = write(bench, |tx| {
        let row = add_one(tx, job().kind("other").ordered("k"));
        block(tx, &row)
    });
    let mut expected = vec![(first.lane.clone(), 3), (other.lane.clone(), 1)];
    expected.sort_by_key(|(lane, _)| lane.id);
    let mut found = blocked(bench);
    found.sort_by_key(|(lane, _)| lane.id);
    assert_eq!(found, expected);
    write(bench, |tx| put(tx, &second, &with_turn(&second)));
    write(bench, |tx| tx.erase(&[third.job.id, other.job.id]).expect("they are erased"));
    assert_eq!(blocked(bench), [(first.lane, 1)]);
    drop(limited);
}

/// The guard of a change holds for a blocked job as for any other.
pub fn a_turn_that_rolls_back_was_not_given(bench: &mut dyn Bench) {
    let [first, second, _] = three(bench);
    undo(bench, |tx| {
        put(tx, &first, &outside(&settled(&first, Status::Cancelled, at(1))));
        put(tx, &second, &with_turn(&second));
        assert_eq!(ids(&look(tx, at(5), &[wish(&all(), 9)])[0]), [second.job.id]);
    });
    assert_eq!(peek(bench, at(10), &all()), [first.job.id]);
    assert_eq!(undo(bench, |tx| order(tx, "k")), (Some(first.job.id), vec![first.job.id]));
}

/// The lowest id stands first, whatever its status; who runs or may be handed out is open; keys are compared as bytes.
pub fn the_order_of_a_key_follows_its_jobs(bench: &mut dyn Bench) {
    let [first, second, third] = three(bench);
    let other = write(bench, |tx| add_one(tx, job().ordered("K")));
    write(bench, |tx| add_settled(tx, job(), Status::Completed, at(1)));
    let (a, b, c) = (first.job.id, second.job.id, third.job.id);
    let running = started(&first, at(60_000));
    write(bench, |tx| put(tx, &first, &running));
    assert_eq!(undo(bench, |tx| order(tx, "k")), (Some(a), vec![a]));
    assert_eq!(undo(bench, |tx| order(tx, "K")), (Some(other.job.id), vec![other.job.id]));
    assert_eq!(undo(bench, |tx| order(tx, "none")), (None, vec![]));
    let failed = settled(&running, Status::Failed, at(2));
    write(bench, |tx| put(tx, &running, &failed));
    assert_eq!(undo(bench, |tx| order(tx, "k")), (Some(a), vec![]));
    write(bench, |tx| put(tx, &failed, &outside(&failed)));
    assert_eq!(undo(bench, |tx| order(tx, "k")), (Some(b), vec![]));
    write(bench, |tx| put(tx, &second, &with_turn(&second)));
    let back = without_turn(&JobRow { order: first.order.clone(), ..requeued(&failed, at(3)) });
    write(bench, |tx| put(tx, &outside(&failed), &back));
    assert_eq!(undo(bench, |tx| order(tx, "k")), (Some(a), vec![b]));
    let shown = read(bench, |view| view.order("k").expect("an order is read"));
    assert_eq!(shown.lowest, Some(back));
    assert_eq!(ids(&shown.open), [b]);
    let both = undo(bench, |tx| tx.orders(&["K", "none", "k"]).expect("orders are read"));
    let lowest: Vec<_> = both.iter().map(|rows| rows.lowest.as_ref().map(|row| row.job.id)).collect();
    assert_eq!(lowest, [Some(other.job.id), None, Some(a)]);
    let behind = |view: &mut dyn crate::store::Read, id, cap| view.followers("k", id, cap).expect("a number");
    assert_eq!(read(bench, |view| [behind(view, a, 9), behind(view, b, 9), behind(view, c, 9)]), [2, 1, 0]);
    assert_eq!(read(bench, |view| behind(view, a, 1)), 1);
}

/// All places, by key and job, a page at a time; the open ones are those that run or may be handed out.
pub fn places_are_read_page_by_page(bench: &mut dyn Bench) {
    let [first, second, third] = three(bench);
    let other = write(bench, |tx| add_one(tx, job().ordered("K")));
    write(bench, |tx| {
        add_one(tx, job());
        put(tx, &first, &started(&first, at(60_000)));
    });
    let page = |after, limit| {
        move |view: &mut dyn crate::store::Read| {
            let places = view.places(after, limit).expect("places are read");
            places.into_iter().map(|place| (place.key.to_string(), place.job, place.open)).collect::<Vec<_>>()
        }
    };
    let place = |key: &str, row: &JobRow, open| (key.to_owned(), row.job.id, open);
    let all = [
        place("K", &other, true),
        place("k", &first, true),
        place("k", &second, false),
        place("k", &third, false),
    ];
    assert_eq!(read(bench, page(("", JobId(i64::MIN)), 9)), all);
    assert_eq!(read(bench, page(("", JobId(i64::MIN)), 2)), all[..2]);
    assert_eq!(read(bench, page(("k", first.job.id), 1)), all[2..3]);
    assert_eq!(read(bench, page(("k", JobId(first.job.id.0 - 1)), 1)), all[1..2]);
    assert_eq!(read(bench, page(("k", third.job.id), 9)), []);
}

/// Who stands behind a job and runs, or is in review itself, does not wait for it.
pub fn only_those_who_wait_are_held_back(bench: &mut dyn Bench) {
    let [first, second, third] = three(bench);
    let last = write(bench, |tx| {
        let row = add_one(tx, job().ordered("k"));
        block(tx, &row)
    });
    write(bench, |tx| put(tx, &first, &settled(&first, Status::Failed, at(1))));
    let behind =
        |bench: &mut dyn Bench, id| read(bench, |view| view.followers("k", id, 9).expect("a number"));
    assert_eq!(behind(bench, first.job.id), 3);
    let running = started(&with_turn(&second), at(60_000));
    write(bench, |tx| put(tx, &second, &running));
    assert_eq!(behind(bench, first.job.id), 2);
    write(bench, |tx| put(tx, &third, &with_turn(&settled(&third, Status::Failed, at(2)))));
    assert_eq!([behind(bench, first.job.id), behind(bench, third.job.id)], [1, 1]);
    assert_eq!(behind(bench, last.job.id), 0);
}

/// Who waits for its turn grows old as well.
pub fn a_blocked_job_expires(bench: &mut dyn Bench) {
    let row = write(bench, |tx| {
        let row = add_one(tx, job().ordered("k").expires(at(50)));
        block(tx, &row)
    });
    assert_eq!(undo(bench, |tx| ids(&tx.expired(at(49), 9).expect("rows"))), []);
    assert_eq!(undo(bench, |tx| ids(&tx.expired(at(50), 9).expect("rows"))), [row.job.id]);
    let gone = outside(&settled(&row, Status::Cancelled, at(50)));
    write(bench, |tx| put(tx, &row, &gone));
    assert_eq!(undo(bench, |tx| ids(&tx.expired(at(60), 9).expect("rows"))), []);
}

/// A damaged row holds nobody back, and its place goes with it when it is erased.
pub fn f151_a_damaged_row_does_not_hold_its_order(bench: &mut dyn Bench) {
    let [first, second, _] = three(bench);
    bench.damage(first.job.id);
    assert_eq!(undo(bench, |tx| order(tx, "k")), (Some(second.job.id), vec![]));
    let key = |tx: &mut dyn Tx| tx.order_of(first.job.id).expect("a key is read");
    assert_eq!(undo(bench, key).as_deref(), Some("k"));
    write(bench, |tx| tx.erase(&[first.job.id]).expect("it is erased"));
    assert_eq!(undo(bench, key), None);
    assert_eq!(read(bench, |view| view.followers("k", JobId(0), 9).expect("a number")), 2);
    assert_eq!(undo(bench, |tx| load(tx, first.job.id)), None);
}

/// A job is erased with its place, in whatever state.
pub fn an_erased_job_leaves_its_order(bench: &mut dyn Bench) {
    let [first, second, third] = three(bench);
    write(bench, |tx| tx.erase(&[first.job.id, third.job.id]).expect("they are erased"));
    assert_eq!(undo(bench, |tx| order(tx, "k")), (Some(second.job.id), vec![]));
    assert_eq!(read(bench, |view| view.followers("k", JobId(0), 9).expect("a number")), 1);
}
