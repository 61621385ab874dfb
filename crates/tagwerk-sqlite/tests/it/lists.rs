//! Lists look at a bounded number of rows.

use tagwerk_core::JobId;
use tagwerk_engine::store::{ListQuery, Listed};
use tagwerk_engine::testing::conformance::Bench as _;

use crate::bench::SqliteBench;
use crate::steps::{add, job, job_of, write};

#[test]
fn a_rare_wish_is_answered_in_bounded_pages() {
    let mut bench = SqliteBench::new();
    write(bench.store(), |tx| {
        add(tx, &vec![job(); 60_000]);
        add(tx, &[job_of("rare")]);
    });
    let readers = bench.store().readers();
    let mut snapshot = readers.snapshot().expect("a snapshot");
    let mut query = ListQuery { kind: Some("rare".to_owned()), limit: 10, ..ListQuery::default() };
    let mut pages = Vec::new();
    loop {
        let page = snapshot.list(&query).expect("a page");
        query.after = page.next;
        pages.push(page);
        if query.after.is_none() {
            break;
        }
    }
    assert_eq!(pages.iter().map(|page| page.rows.len()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(pages[0].next, Some(JobId(50_000)));
    assert!(matches!(&pages[1].rows[..], [Listed::Job(job)] if job.row.job.id == JobId(60_001)));
}
