//! How SQLite runs the statements that matter: by which index, without a scan and without a sort.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::Place;
use crate::codec::{attempt, detail};
use crate::read::{list, ready};
use crate::tx::{claim, jobs, keys, time, upkeep};
use crate::{book, connect, turns, tx};

/// The statement, and what its plan must name.
const HOT: &[(&str, &str)] = &[
    (claim::RUN, "SEARCH job USING INDEX job_ready (lane=? AND prio=? AND due>?)"),
    (claim::RUN_SAME, "SEARCH job USING INDEX job_ready (lane=? AND prio=? AND due=? AND rowid>?)"),
    (claim::RUN_LATER, "SEARCH job USING INDEX job_ready (lane=? AND prio=? AND due>?)"),
    (book::SEEK_LEVEL, "SEARCH job USING COVERING INDEX job_ready (lane=? AND prio=?)"),
    (book::SEEK_AFTER, "SEARCH job USING COVERING INDEX job_ready (lane=? AND prio=? AND due>?)"),
    (book::NEXT_LEVEL, "SEARCH job USING COVERING INDEX job_ready (lane=? AND prio<?)"),
    (book::NEXT_LANE, "SEARCH job USING COVERING INDEX job_ready (lane>?)"),
    (tx::LOAD, "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"),
    (jobs::UPDATE, "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"),
    (time::OVERDUE, "SEARCH job USING COVERING INDEX job_lease (lease_until<?)"),
    (time::EXPIRED, "SEARCH job USING INDEX job_expires (expires>? AND expires<?)"),
    (time::BY_REQUEST, "SEARCH job USING COVERING INDEX job_request (request_id=?)"),
    (turns::NEXT, "SEARCH job_order USING PRIMARY KEY (okey=? AND job>?)"),
    (turns::NEXT_OPEN, "SEARCH job_order USING COVERING INDEX job_order_open (okey=? AND job>?)"),
    (turns::COUNT, "SEARCH job_order USING PRIMARY KEY (okey=? AND job>?)"),
    (turns::UPDATE, "SEARCH job_order USING PRIMARY KEY (okey=? AND job=?)"),
    (turns::DELETE, "SEARCH job_order USING PRIMARY KEY (okey=? AND job=?)"),
    (keys::SELECT, "SEARCH idem_key USING PRIMARY KEY (key=?)"),
    (keys::REPLACE, "SEARCH idem_key USING PRIMARY KEY (key=?)"),
    (keys::TOMBSTONES, "SEARCH idem_key USING INDEX idem_tomb (key>?)"),
    (upkeep::NOTE_REFUSED, "SEARCH attempt USING PRIMARY KEY (job=? AND seq=?)"),
    (upkeep::SCAN, "SEARCH job USING INTEGER PRIMARY KEY (rowid>?)"),
    (attempt::SELECT, "SEARCH attempt USING PRIMARY KEY (job=? AND seq>?)"),
    (detail::SELECT_FULL, "SEARCH detail USING INTEGER PRIMARY KEY (rowid=?)"),
    (list::ALL, "SEARCH job USING INTEGER PRIMARY KEY (rowid>?)"),
    (list::FAILED, "job_review"),
    (list::BY_KEY, "SEARCH key_past USING PRIMARY KEY (key=? AND job>?)"),
    (keys::PUT_PAST, "SEARCH job EXISTS USING INTEGER PRIMARY KEY (rowid=?)"),
    (keys::DROP_PAST, "SEARCH key_past USING PRIMARY KEY (key=? AND job=?)"),
    (
        list::BY_CORRELATION,
        "SEARCH detail USING COVERING INDEX detail_correlation (correlation_id=? AND rowid>?)",
    ),
    (
        list::BY_SUBJECT,
        "SEARCH detail USING COVERING INDEX detail_subject (subject_id=? AND subject_kind=? AND rowid>?)",
    ),
    (ready::COUNT_LEVEL, "SEARCH job USING COVERING INDEX job_ready (lane=? AND prio=? AND due<?)"),
    (
        ready::COUNT_SAME,
        "SEARCH job USING COVERING INDEX job_ready (lane=? AND prio=? AND due=? AND rowid<?)",
    ),
];

fn plan(conn: &Connection, sql: &str) -> String {
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it explains");
    let lines = explain.raw_query().mapped(|row| row.get::<_, String>(3));
    lines.collect::<Result<Vec<_>, _>>().expect("lines").join("\n")
}

#[test]
fn hot_statements_use_their_index() {
    let place = Place::new();
    let plans = HOT.iter().map(|(sql, index)| (sql, index, plan(&place.store.writer.conn, sql)));
    let wrong = plans.filter(|(_, index, plan)| {
        !plan.contains(*index) || plan.contains("SCAN job") || plan.contains("TEMP B-TREE")
    });
    let wrong: Vec<String> =
        wrong.map(|(sql, index, plan)| format!("{sql}\nis run as\n{plan}\nnot as\n{index}")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Lists that no index fits walk over the table in id order, a bounded stretch at a time; that is no sort either.
#[test]
fn no_list_sorts() {
    let place = Place::new();
    for sql in [list::ALL, list::FAILED, list::BY_KEY, list::BY_CORRELATION, list::BY_SUBJECT] {
        let plan = plan(&place.store.writer.conn, sql);
        assert!(!plan.contains("TEMP B-TREE"), "{sql}\nis run as\n{plan}");
    }
}

/// A statement with parameters near a partial index must not be prepared anew for each of their values.
#[test]
fn plans_do_not_depend_on_parameters() {
    let place = Place::new();
    let setup = connect::Setup { cache_bytes: 1 << 20, busy_timeout: std::time::Duration::ZERO };
    let reading = connect::reading(&place.path(), setup).expect("a connection");
    for conn in [&place.store.writer.conn, &reading] {
        assert_eq!(conn.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG), Ok(true));
    }
}
