//! The file as people see it with `sqlite3`, while the server runs.

use std::fmt::Write as _;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use tagwerk_core::Status;
use tagwerk_core::gate::LimitSettings;
use tagwerk_engine::command::{EnqueueJob, LimitCall};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::row::{LimitRef, Ordering, Special, Subject};
use tagwerk_engine::store::Tx;
use tagwerk_engine::testing::conformance::Bench as _;

use crate::bench::SqliteBench;
use crate::engine::{answered, job as job_of_the_engine};
use crate::rig::Rig;
use crate::steps::{Draft, add, at, attempt, detail, job, put, settled, started, take, write};

const SECRET: &str = "top-secret-payload";

fn fill(tx: &mut dyn Tx) {
    let draft = Draft { detail: detail(&format!("\"{SECRET}\"")), ..job() };
    let rows = add(tx, &[draft.clone(), draft.clone(), draft]);
    let first = started(&rows[0], at(0));
    let mut done = settled(&first, Status::Completed, at(1_234));
    done.note.result = Some(format!("\"{SECRET}\""));
    put(tx, &[(rows[0].clone(), first.clone()), (first.clone(), done)]);
    tx.put_attempts(&[(first.job.id, attempt(&first, at(1_234)))]).expect("an attempt");
    take(tx, at(0), 1);
}

fn all_of(conn: &Connection, view: &str) -> (Vec<String>, String) {
    let mut select = conn.prepare(&format!("SELECT * FROM {view}")).expect("a view");
    let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
    let mut rows = select.query([]).expect("rows");
    let mut text = String::new();
    while let Some(row) = rows.next().expect("a row") {
        for at in 0..columns.len() {
            let value: rusqlite::types::Value = row.get(at).expect("a value");
            write!(text, "{value:?} ").expect("a string grows");
        }
        text.push('\n');
    }
    (columns, text)
}

/// Status, ordering key, blocked, limits, fair key, what took its place.
type Shown = (String, Option<String>, bool, Option<String>, Option<String>, Option<i64>);

/// What orders a job and what limits it, as it came.
#[test]
fn the_view_of_jobs_shows_keys_limits_and_what_took_its_place() {
    let mut rig = Rig::new();
    for limit in ["mail", "crm"] {
        let settings = LimitSettings { max_running: Some(1), rate: None };
        let put = LimitCall::Put(limit.to_owned(), settings);
        answered(&rig.send(|reply| Message::Limit(put, By::local(), Box::new(reply)))).expect("a limit");
    }
    let keyed = EnqueueJob {
        ordering: Some(Box::new(Ordering { key: "customer 7".into(), on_head_failure: None })),
        ..job_of_the_engine()
    };
    let limits = ["mail", "crm:a \"b\""].map(LimitRef::parse).to_vec();
    let special = Special { limits, fair_key: Some("tenant".to_owned()) };
    let versioned = |version| EnqueueJob {
        subject: Some(Subject { kind: "order".to_owned(), id: "9".to_owned(), version: Some(version) }),
        supersede: true,
        ..job_of_the_engine()
    };
    let limited = EnqueueJob { special: Some(Arc::new(special)), ..job_of_the_engine() };
    rig.enqueue(vec![keyed.clone(), keyed, limited, versioned(1)]);
    rig.enqueue(vec![versioned(2)]);
    let conn =
        Connection::open_with_flags(rig.path(), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a connection");
    let shown =
        "SELECT status, ordering_key, blocked, limits, fair_key, superseded_by FROM tagwerk_jobs ORDER BY id";
    let mut select = conn.prepare(shown).expect("a view");
    let row = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
    };
    let shown: Vec<Shown> = select.query_map([], row).expect("rows").collect::<Result<_, _>>().expect("rows");
    let pending = || "pending".to_owned();
    let key = || Some("customer 7".to_owned());
    let limits = Some(r#"["crm:a \"b\"","mail"]"#.to_owned());
    let expected: [Shown; 5] = [
        (pending(), key(), false, None, None, None),
        (pending(), key(), true, None, None, None),
        (pending(), None, false, limits, Some("tenant".to_owned()), None),
        ("cancelled".to_owned(), None, false, None, None, Some(5)),
        (pending(), None, false, None, None, None),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn views_are_readable_while_the_server_writes_and_hold_no_secrets() {
    let mut bench = SqliteBench::new();
    write(bench.store(), fill);
    let conn =
        Connection::open_with_flags(bench.path(), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a connection");
    let mut tx = bench.store().begin().expect("a transaction");
    fill(&mut *tx);

    let (columns, jobs) = all_of(&conn, "tagwerk_jobs");
    for column in ["id", "type", "queue", "status", "worker_id", "available_at", "finished_at", "error"] {
        assert!(columns.iter().any(|name| name == column), "{column} of {columns:?}");
    }
    assert_eq!(jobs.lines().count(), 3, "what is not committed is not seen");
    for word in ["completed", "running", "pending", "work", "default", "worker-1", "2026-05-28T20:26:41.234Z"]
    {
        assert!(jobs.contains(word), "{word} in\n{jobs}");
    }
    let (_, attempts) = all_of(&conn, "tagwerk_attempts");
    assert!(attempts.contains("completed") && attempts.contains("2026-05-28T20:26:41.234Z"), "{attempts}");
    let (_, payloads) = all_of(&conn, "tagwerk_payloads");
    assert_eq!(payloads.matches(SECRET).count(), 4);

    let bits: Vec<String> = conn
        .prepare(
            "SELECT lease_bits FROM job WHERE lease_bits IS NOT NULL UNION SELECT lease_bits FROM attempt",
        )
        .and_then(|mut select| {
            select.query_map([], |row| row.get::<_, i64>(0))?.map(|bits| Ok(bits?.to_string())).collect()
        })
        .expect("bits");
    assert_eq!(bits.len(), 2);
    for text in [jobs, attempts] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(bits.iter().all(|bits| !text.contains(bits)), "{text}");
    }
    tx.commit().expect("readers are not in its way");
    assert_eq!(all_of(&conn, "tagwerk_jobs").1.lines().count(), 6);
}
