//! Lists: filters, pages, and what a row of a list leaves out.

use tagwerk_core::idempotency::Scope;
use tagwerk_core::{JobId, Status};

use super::steps::{
    add, add_one, at, ids, job, listed_ids, plain_detail, prepare, put, read, settled, started, write,
};
use super::{Bench, odd};
use crate::row::{FullJob, JobRow, KeyRow, KeyWrite, Subject};
use crate::store::{Insert, ListQuery, Listed};

/// All pages of a list.
fn pages(bench: &mut dyn Bench, query: &ListQuery) -> Vec<Listed> {
    let mut query = query.clone();
    let mut rows = Vec::new();
    for _ in 0..1_000 {
        let page = read(bench, |view| view.list(&query).expect("a list is read"));
        assert!(page.rows.len() <= query.limit, "{} rows for {}", page.rows.len(), query.limit);
        rows.extend(page.rows);
        match page.next {
            Some(next) => {
                assert!(query.after.is_none_or(|after| next > after), "the list stands still at {next}");
                query.after = Some(next);
            }
            None => return rows,
        }
    }
    unreachable!("the list does not end")
}

fn list(bench: &mut dyn Bench, query: &ListQuery) -> Vec<JobId> {
    listed_ids(&pages(bench, query))
}

fn page_of(limit: usize) -> ListQuery {
    ListQuery { limit, ..ListQuery::default() }
}

/// Everything of a job but payload, result, checkpoint and what came of its effects.
pub fn f131_a_row_of_a_list_leaves_out_what_may_be_large(bench: &mut dyn Bench) {
    let inserts = write(bench, |tx| {
        let mut inserts = prepare(tx, &[job(), job()]);
        let first = &mut inserts[0];
        first.row = odd::running(first.row.job.id, first.row.lane.clone(), 1);
        first.detail = odd::detail(1);
        tx.insert(&inserts).expect("jobs are inserted");
        inserts
    });
    let expected: Vec<Listed> = inserts
        .into_iter()
        .map(|Insert { mut row, mut detail }| {
            detail.payload = String::new();
            row.note.result = None;
            row.note.checkpoint = None;
            for effect in &mut row.job.effects {
                effect.result = None;
            }
            Listed::Job(Box::new(FullJob { row, detail }))
        })
        .collect();
    assert_eq!(pages(bench, &page_of(10)), expected);
}

/// The key of the n-th of [`many`]: new for an even one, taken over from its neighbour by an odd one.
fn taken(n: usize, row: &JobRow) -> KeyWrite {
    let held = held(&format!("k{}", n / 2), row.job.id);
    if n.is_multiple_of(2) {
        KeyWrite::Insert(held)
    } else {
        KeyWrite::Replace { row: held, from: JobId(row.job.id.0 - 1) }
    }
}

fn held(key: &str, owner: JobId) -> KeyRow {
    KeyRow {
        key: key.to_owned(),
        owner,
        scope: Scope::Ttl,
        ttl_ms: 1_000,
        fingerprint: [1; 16],
        tombstone: None,
    }
}

/// A job is found by its key while it holds it, when another took it over, when it was freed, and when it has it back;
/// not when the job is gone.
pub fn a_job_is_found_by_its_key_for_as_long_as_it_is_there(bench: &mut dyn Bench) {
    let keyed = || job().key("k");
    let rows = write(bench, |tx| {
        let rows = add(tx, &[keyed(), keyed(), keyed(), job()]);
        let ids: Vec<JobId> = rows.iter().map(|row| row.job.id).collect();
        let mut put = |write| tx.put_keys(&[write]).expect("a key is written");
        put(KeyWrite::Insert(held("k", ids[0])));
        put(KeyWrite::Replace { row: held("k", ids[1]), from: ids[0] });
        put(KeyWrite::Delete { key: "k".to_owned(), owner: ids[1] });
        put(KeyWrite::Insert(held("k", ids[2])));
        rows
    });
    let ids: Vec<JobId> = rows.iter().map(|row| row.job.id).collect();
    let by_key = ListQuery { key: Some("k".into()), ..page_of(10) };
    assert_eq!(list(bench, &by_key), ids[..3]);
    write(bench, |tx| {
        tx.put_keys(&[KeyWrite::Replace { row: held("k", ids[0]), from: ids[2] }]).expect("it has it back");
    });
    assert_eq!(list(bench, &by_key), ids[..3]);
    let next = ListQuery { after: Some(ids[0]), limit: 1, ..by_key.clone() };
    assert_eq!(list(bench, &next), ids[1..3], "all pages of one");
    write(bench, |tx| tx.erase(&ids[1..2]).expect("a job is erased"));
    assert_eq!(list(bench, &by_key), [ids[0], ids[2]]);
    write(bench, |tx| {
        tx.erase(&ids[..1]).expect("the holder is erased");
        tx.put_keys(&[KeyWrite::Delete { key: "k".to_owned(), owner: ids[0] }]).expect("its key goes");
    });
    assert_eq!(list(bench, &by_key), [ids[2]]);
}

/// Eight jobs that differ in everything that a list can filter by.
fn many(bench: &mut dyn Bench) -> Vec<JobRow> {
    write(bench, |tx| {
        let drafts: Vec<_> = (0_u8..8)
            .map(|n| {
                let draft = job().created(at(i64::from(n))).key(&format!("k{}", n / 2));
                draft.kind(["a", "b"][usize::from(n % 2)]).queue(["x", "y"][usize::from(n / 4)])
            })
            .collect();
        let mut inserts = prepare(tx, &drafts);
        for (n, insert) in inserts.iter_mut().enumerate() {
            insert.detail.correlation_id = (n % 3 == 0).then(|| "chain".to_owned());
            insert.detail.subject = (n != 5).then(|| Subject {
                kind: ["order", "invoice"][n / 2 % 2].to_owned(),
                id: (n % 4).to_string(),
                version: None,
            });
        }
        tx.insert(&inserts).expect("jobs are inserted");
        let keys: Vec<KeyWrite> =
            inserts.iter().enumerate().map(|(n, insert)| taken(n, &insert.row)).collect();
        tx.put_keys(&keys).expect("keys are written");
        let rows: Vec<JobRow> = inserts.into_iter().map(|insert| insert.row).collect();
        put(tx, &rows[1], &started(&rows[1], at(60_000)));
        put(tx, &rows[2], &settled(&rows[2], Status::Completed, at(9)));
        put(tx, &rows[3], &settled(&rows[3], Status::Failed, at(9)));
        put(tx, &rows[4], &settled(&rows[4], Status::Cancelled, at(9)));
        rows
    })
}

/// Each filter by itself.
pub fn each_filter_chooses_by_itself(bench: &mut dyn Bench) {
    let rows = many(bench);
    let base = || page_of(10);
    let cases: Vec<(ListQuery, &[usize])> = vec![
        (base(), &[0, 1, 2, 3, 4, 5, 6, 7]),
        (ListQuery { statuses: vec![Status::Pending], ..base() }, &[0, 5, 6, 7]),
        (ListQuery { statuses: vec![Status::Running], ..base() }, &[1]),
        (ListQuery { statuses: vec![Status::Failed, Status::Completed], ..base() }, &[2, 3]),
        (ListQuery { statuses: Status::ALL.to_vec(), ..base() }, &[0, 1, 2, 3, 4, 5, 6, 7]),
        (ListQuery { kind: Some("b".into()), ..base() }, &[1, 3, 5, 7]),
        (ListQuery { kind: Some("c".into()), ..base() }, &[]),
        (ListQuery { kind: Some("B".into()), ..base() }, &[]),
        (ListQuery { queue: Some("y".into()), ..base() }, &[4, 5, 6, 7]),
        (ListQuery { queue: Some("z".into()), ..base() }, &[]),
        (ListQuery { subject_kind: Some("order".into()), ..base() }, &[0, 1, 4]),
        (ListQuery { subject_kind: Some("Order".into()), ..base() }, &[]),
        (ListQuery { subject_id: Some("2".into()), ..base() }, &[2, 6]),
        (ListQuery { correlation_id: Some("chain".into()), ..base() }, &[0, 3, 6]),
        (ListQuery { key: Some("k1".into()), ..base() }, &[2, 3]),
        (ListQuery { key: Some("k9".into()), ..base() }, &[]),
        (ListQuery { since: Some(at(6)), ..base() }, &[6, 7]),
        (ListQuery { until: Some(at(2)), ..base() }, &[0, 1]),
        (ListQuery { after: Some(rows[5].job.id), ..base() }, &[6, 7]),
        (ListQuery { after: Some(rows[7].job.id), ..base() }, &[]),
    ];
    for (query, expected) in cases {
        let expected: Vec<JobId> = expected.iter().map(|index| rows[*index].job.id).collect();
        assert_eq!(list(bench, &query), expected, "{query:?}");
    }
}

/// Filters together choose what each of them would.
pub fn filters_choose_together(bench: &mut dyn Bench) {
    let rows = many(bench);
    let everything = || ListQuery {
        statuses: vec![Status::Pending, Status::Failed],
        kind: Some("a".into()),
        queue: Some("y".into()),
        subject_kind: Some("invoice".into()),
        subject_id: Some("2".into()),
        correlation_id: Some("chain".into()),
        key: Some("k3".into()),
        since: Some(at(6)),
        until: Some(at(7)),
        after: Some(rows[5].job.id),
        limit: 10,
    };
    assert_eq!(list(bench, &everything()), [rows[6].job.id]);
    let misses = [
        ListQuery { statuses: vec![Status::Failed], ..everything() },
        ListQuery { kind: Some("b".into()), ..everything() },
        ListQuery { queue: Some("x".into()), ..everything() },
        ListQuery { subject_kind: Some("order".into()), ..everything() },
        ListQuery { subject_id: Some("6".into()), ..everything() },
        ListQuery { correlation_id: Some("other".into()), ..everything() },
        ListQuery { key: Some("k2".into()), ..everything() },
        ListQuery { since: Some(at(7)), ..everything() },
        ListQuery { until: Some(at(6)), ..everything() },
        ListQuery { after: Some(rows[6].job.id), ..everything() },
    ];
    for query in misses {
        assert_eq!(list(bench, &query), [], "{query:?}");
    }
    let pair = ListQuery { kind: Some("a".into()), subject_kind: Some("order".into()), ..page_of(1) };
    assert_eq!(list(bench, &pair), [rows[0].job.id, rows[4].job.id]);
}

/// Pages of any size show every job once, in id order, and end.
pub fn pages_of_any_size_show_every_job_once(bench: &mut dyn Bench) {
    let drafts: Vec<_> = (0..230).map(|n| job().kind(if n % 23 == 22 { "rare" } else { "common" })).collect();
    let rows = write(bench, |tx| add(tx, &drafts));
    for limit in [1, 7, 100, 230, 231, 1_000] {
        assert_eq!(list(bench, &page_of(limit)), ids(&rows), "pages of {limit}");
    }
    let rare: Vec<JobId> = ids(&rows).into_iter().skip(22).step_by(23).collect();
    for limit in [1, 3, 10, 11] {
        assert_eq!(
            list(bench, &ListQuery { kind: Some("rare".into()), ..page_of(limit) }),
            rare,
            "pages of {limit}"
        );
    }
}

/// A job that changes its status moves from one list to the other.
pub fn a_list_follows_the_status(bench: &mut dyn Bench) {
    let row = write(bench, |tx| add_one(tx, job()));
    let of = |status| ListQuery { statuses: vec![status], ..page_of(10) };
    let failed = settled(&row, Status::Failed, at(1));
    write(bench, |tx| put(tx, &row, &failed));
    assert_eq!(list(bench, &of(Status::Pending)), []);
    assert_eq!(list(bench, &of(Status::Failed)), [row.job.id]);
    bench.reopen();
    assert_eq!(list(bench, &of(Status::Failed)), [row.job.id]);
    let shown = pages(bench, &of(Status::Failed)).remove(0);
    let detail = plain_detail(String::new());
    assert_eq!(shown, Listed::Job(Box::new(FullJob { row: failed, detail })));
}

/// A scan shows every row in id order, page by page.
pub fn a_scan_shows_every_row(bench: &mut dyn Bench) {
    let rows = many(bench);
    let scan = |bench: &mut dyn Bench, after: i64, limit| {
        listed_ids(&read(bench, |view| view.scan(JobId(after), limit).expect("rows are read")))
    };
    assert_eq!(scan(bench, 0, 100), ids(&rows));
    assert_eq!(scan(bench, 0, 3), ids(&rows[..3]));
    assert_eq!(scan(bench, rows[2].job.id.0, 3), ids(&rows[3..6]));
    assert_eq!(scan(bench, rows[7].job.id.0, 3), []);
}
