//! Migrations and names.

use tagwerk_core::{AttemptEnd, Cause, FailureClass, Reason, Status, Timestamp};
use tagwerk_engine::row::Counter;

use super::Place;
use crate::code::Code;
use crate::migrate::{self, Migration, Standing};

const SECOND: Migration =
    Migration { name: "9999_second", sql: "CREATE TABLE second (id INTEGER PRIMARY KEY)" };

/// All steps and one more.
fn and(step: Migration) -> Vec<Migration> {
    [migrate::ALL, &[step]].concat()
}

#[test]
fn a_step_is_taken_once() {
    let place = Place::new();
    let conn = &place.store.writer.conn;
    let (all, next) = (and(SECOND), migrate::latest(migrate::ALL) + 1);
    for _ in 0..2 {
        let standing = migrate::run(conn, &all, Timestamp::EPOCH).expect("it runs");
        assert_eq!(standing, Standing::Known(next));
    }
    assert_eq!(migrate::version(conn).expect("a version"), next);
    assert_eq!(migrate::standing(conn, migrate::ALL).expect("a look"), Standing::Newer(next));
}

#[test]
fn a_step_that_fails_leaves_nothing() {
    let place = Place::new();
    let conn = &place.store.writer.conn;
    let broken = Migration {
        name: "9999_broken",
        sql: "CREATE TABLE half (id INTEGER); CREATE TABLE job (id INTEGER)",
    };
    migrate::run(conn, &and(broken), Timestamp::EPOCH).expect_err("job is there already");
    assert!(conn.is_autocommit());
    let known = Standing::Known(migrate::latest(migrate::ALL));
    assert_eq!(migrate::standing(conn, migrate::ALL).expect("a look"), known);
    conn.prepare("SELECT 1 FROM half").expect_err("it was rolled back");
}

#[test]
fn a_step_that_was_changed_is_refused() {
    let place = Place::new();
    let changed = Migration { sql: "-- something else", ..migrate::ALL[0] };
    let all = [&[changed], &migrate::ALL[1..]].concat();
    let standing = migrate::run(&place.store.writer.conn, &all, Timestamp::EPOCH).expect("it looks");
    assert_eq!(standing, Standing::Changed("0001_init".to_owned()));
}

/// Jobs of a store of the first schema are found by their keys as before: those that hold theirs, and those that do not.
#[test]
fn the_second_step_keeps_jobs_findable_by_key() {
    let conn = rusqlite::Connection::open_in_memory().expect("a connection");
    migrate::run(&conn, &migrate::ALL[..1], Timestamp::EPOCH).expect("the first schema");
    let detail = "INSERT INTO detail (job, key, payload) VALUES (?1, ?2, '{}')";
    for (job, key) in [(1, Some("taken over")), (2, Some("taken over")), (3, Some("freed")), (4, None)] {
        conn.execute(detail, (job, key)).expect("a detail");
    }
    let key =
        "INSERT INTO idem_key (key, owner, scope, ttl_ms, fingerprint) VALUES (?1, ?2, 1, 1, zeroblob(16))";
    conn.execute(key, ("taken over", 2)).expect("a key");
    migrate::run(&conn, &migrate::ALL[..2], Timestamp::EPOCH).expect("the second step");
    let mut select = conn.prepare("SELECT key, job FROM key_past ORDER BY job").expect("a statement");
    let past = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("a query");
    let past: Vec<(String, i64)> = past.collect::<Result<_, _>>().expect("rows");
    assert_eq!(past, [("taken over".to_owned(), 1), ("freed".to_owned(), 3)]);
}

/// A token of a store that knew no rates has none of its own.
#[test]
fn a_token_that_was_there_before_rates_has_none() {
    let conn = rusqlite::Connection::open_in_memory().expect("a connection");
    let before = migrate::ALL.iter().position(|step| step.name == "0014_token_rate").expect("the step");
    migrate::run(&conn, &migrate::ALL[..before], Timestamp::EPOCH).expect("the schema before");
    conn.execute(
        "INSERT INTO token (name, hash, scopes, queues, created) VALUES ('shop', ?1, 'read work', 'mail', 7)",
        [[5_u8; 32]],
    )
    .expect("a token");
    migrate::run(&conn, migrate::ALL, Timestamp::EPOCH).expect("the schema of now");
    let tokens = crate::token::read_all(&conn).expect("tokens");
    let [token] = tokens.as_slice() else { panic!("{tokens:?}") };
    assert_eq!((token.name.as_str(), token.rate, token.scopes.len()), ("shop", None, 2));
    for (count, per_ms) in [("5", "NULL"), ("NULL", "5")] {
        conn.execute_batch(&format!("UPDATE token SET rate_count = {count}, rate_per_ms = {per_ms}"))
            .expect("half a rate");
        let told = crate::token::read_all(&conn).expect_err("it cannot be read");
        assert!(format!("{told:?}").contains("shop"), "{told:?}");
    }
}

/// What came into review before there were alerts is not told as new.
#[test]
fn reviews_that_were_there_before_alerts_are_marked_as_judged() {
    let conn = rusqlite::Connection::open_in_memory().expect("a connection");
    let before = migrate::ALL.iter().position(|step| step.name == "0013_alerts").expect("the step");
    migrate::run(&conn, &migrate::ALL[..before], Timestamp::EPOCH).expect("the schema before");
    conn.execute_batch(
        "INSERT INTO queue (id, name) VALUES (1, 'a'), (2, 'b');
         INSERT INTO type (id, name) VALUES (1, 'charge'), (2, 'send');
         INSERT INTO lane (id, queue, type) VALUES (1, 1, 1), (2, 2, 1), (3, 1, 2);
         INSERT INTO ledger (lane, reviews) VALUES (1, 3), (2, 4), (3, 0);",
    )
    .expect("a file of before");
    migrate::run(&conn, migrate::ALL, Timestamp::EPOCH).expect("the schema of now");
    assert_eq!(crate::alert::marks(&conn).ok(), Some(vec![("charge".to_owned(), 7)]));
}

/// Lanes that were there before spaces keep their numbers and are in none, and the view of jobs still knows them.
#[test]
fn lanes_that_were_there_before_spaces_are_in_none() {
    let conn = rusqlite::Connection::open_in_memory().expect("a connection");
    let before = migrate::ALL.iter().position(|step| step.name == "0015_spaces").expect("the step");
    migrate::run(&conn, &migrate::ALL[..before], Timestamp::EPOCH).expect("the schema before");
    conn.execute_batch(
        "INSERT INTO queue (id, name) VALUES (1, 'q'); INSERT INTO type (id, name) VALUES (1, 't'), (2, 'u');
         INSERT INTO lane (id, queue, type) VALUES (3, 1, 1), (9, 1, 2);
         INSERT INTO special_lane (id, class, first, second, fair) VALUES (-1, 9, 0, 0, 'f');
         INSERT INTO job (id, lane, prio, state, due, version, flags, attempt, leases, retry_count, max_retries, lease_losses,
                          max_lease_losses, release_count, payload_bytes, created, updated)
         VALUES (1, 3, 10, 0, 0, 1, 0, 0, 0, 0, 3, 0, 4, 0, 2, 0, 0), (2, -1, 10, 0, 0, 1, 0, 0, 0, 0, 3, 0, 4, 0, 2, 0, 0);",
    )
    .expect("jobs");
    migrate::run(&conn, migrate::ALL, Timestamp::EPOCH).expect("the schema of now");
    let rows = |sql: &str| -> Vec<String> {
        let mut select = conn.prepare(sql).expect("a statement");
        let rows = select.query_map([], |row| row.get(0)).expect("a query");
        rows.collect::<Result<_, _>>().expect("rows")
    };
    assert_eq!(
        rows("SELECT id || ' ' || queue || ' ' || type || ' ' || space || '.' FROM lane ORDER BY id"),
        ["3 1 1 .", "9 1 2 ."]
    );
    assert_eq!(
        rows("SELECT id || ' ' || queue || ' ' || type FROM tagwerk_jobs ORDER BY id"),
        ["1 q t", "2 q u"]
    );
    conn.execute_batch("INSERT INTO lane (queue, type, space) VALUES (1, 1, 'north'), (1, 1, 'south')")
        .expect("the same queue and type in two spaces");
    let twice = conn.execute_batch("INSERT INTO lane (queue, type, space) VALUES (1, 1, 'north')");
    assert!(twice.is_err(), "once in each space");
}

/// Jobs of a store with the view of before are shown with what orders and limits them.
#[test]
fn the_eighth_step_shows_jobs_that_were_there_before() {
    let conn = rusqlite::Connection::open_in_memory().expect("a connection");
    migrate::run(&conn, &migrate::ALL[..7], Timestamp::EPOCH).expect("the schema before");
    conn.execute_batch(
        "INSERT INTO queue (id, name) VALUES (1, 'q'); INSERT INTO type (id, name) VALUES (1, 't');
         INSERT INTO lane (id, queue, type) VALUES (1, 1, 1);
         INSERT INTO lim (id, name, partition) VALUES (1, 'mail', ''), (2, 'crm', 'x');
         INSERT INTO special_lane (id, class, first, second, fair) VALUES (-1, 1, 1, 2, ''), (-2, 1, 1, 0, 'f');",
    )
    .expect("lanes");
    let job = "INSERT INTO job (id, lane, prio, state, due, version, flags, attempt, leases, retry_count, max_retries, \
               lease_losses, max_lease_losses, release_count, payload_bytes, created, updated) \
               VALUES (?1, ?2, 10, ?3, 0, 1, 0, 0, 0, 0, 3, 0, 4, 0, 2, 0, 0)";
    let detail = "INSERT INTO detail (job, payload, ordering) VALUES (?1, '{}', ?2)";
    for (id, lane, state, ordering) in [(1, 1, 0, None), (2, -1, 2, Some("-k")), (3, -2, 0, Some("skk"))] {
        conn.execute(job, (id, lane, state)).expect("a job");
        conn.execute(detail, (id, ordering)).expect("a detail");
    }
    migrate::run(&conn, &migrate::ALL[..8], Timestamp::EPOCH).expect("the eighth step");
    let shown = "SELECT id || ' ' || type || ' ' || status || ' ' || coalesce(limits, '-') || ' ' || coalesce(fair_key, '-') || \
                 ' ' || coalesce(ordering_key, '-') || ' ' || blocked FROM tagwerk_jobs ORDER BY id";
    let mut select = conn.prepare(shown).expect("a statement");
    let shown: Vec<String> =
        select.query_map([], |row| row.get(0)).expect("a query").collect::<Result<_, _>>().expect("rows");
    let expected =
        ["1 t pending - - - 0", r#"2 t pending ["crm:x","mail"] - k 1"#, r#"3 t pending ["mail"] f kk 0"#];
    assert_eq!(shown, expected);
}

/// Jobs that wait for their turn in a store of before are counted with the plain lane of their queue and type.
#[test]
fn the_ninth_step_counts_those_who_are_blocked() {
    let conn = rusqlite::Connection::open_in_memory().expect("a connection");
    migrate::run(&conn, &migrate::ALL[..8], Timestamp::EPOCH).expect("the schema before");
    conn.execute_batch(
        "INSERT INTO queue (id, name) VALUES (1, 'q'); INSERT INTO type (id, name) VALUES (1, 't'), (2, 'u'), (3, 'v');
         INSERT INTO lane (id, queue, type) VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3);
         INSERT INTO special_lane (id, class, first, second, fair) VALUES (-1, 1, 0, 0, 'f');
         INSERT INTO ledger (lane, enqueued, pending) VALUES (1, 4, 4), (2, 1, 1), (3, 0, 0);",
    )
    .expect("lanes");
    let job = "INSERT INTO job (id, lane, prio, state, due, version, flags, attempt, leases, retry_count, max_retries, \
               lease_losses, max_lease_losses, release_count, payload_bytes, created, updated) \
               VALUES (?1, ?2, 10, ?3, 0, 1, 0, 0, 0, 0, 3, 0, 4, 0, 2, 0, 0)";
    // The first has the turn, the last is in review; those between them wait.
    for (id, lane, state, open) in [(1, 1, 0, 1), (2, 1, 2, 0), (3, -1, 2, 0), (4, 2, 2, 0), (5, 1, 3, 0)] {
        conn.execute(job, (id, lane, state)).expect("a job");
        conn.execute("INSERT INTO job_order (okey, job, open) VALUES ('k', ?1, ?2)", (id, open))
            .expect("a place");
    }
    migrate::run(&conn, &migrate::ALL[..9], Timestamp::EPOCH).expect("the ninth step");
    let mut select =
        conn.prepare("SELECT lane, blocked, pending FROM ledger ORDER BY lane").expect("a statement");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("a query");
    let rows: Vec<(i64, i64, i64)> = rows.collect::<Result<_, _>>().expect("rows");
    assert_eq!(rows, [(1, 2, 4), (2, 1, 1), (3, 0, 0)]);
}

#[test]
fn the_views_name_what_the_program_names() {
    let place = Place::new();
    let named = |what: &str, code: i64| -> String {
        let sql = "SELECT name FROM code_name WHERE what = ?1 AND code = ?2";
        place.store.writer.conn.query_row(sql, (what, code), |row| row.get(0)).expect("a name")
    };
    for value in Status::ALL {
        assert_eq!(named("status", value.code()), value.name());
    }
    for value in FailureClass::ALL {
        assert_eq!(named("class", value.code()), value.name());
    }
    for value in Reason::ALL {
        assert_eq!(named("reason", value.code()), value.name());
    }
    for value in Cause::ALL {
        assert_eq!(named("cause", value.code()), value.name());
    }
    for code in 1..=13 {
        if let Some(end) = AttemptEnd::from_code(code) {
            assert_eq!(named("outcome", code), end.name());
        }
    }
}

#[test]
fn every_code_comes_back() {
    fn comes_back<T: Code + PartialEq + std::fmt::Debug>() -> usize {
        let found: Vec<T> = (0..1_000).filter_map(T::from_code).collect();
        for value in &found {
            assert_eq!(T::from_code(value.code()), Some(*value));
        }
        found.len()
    }
    // Pending has three numbers, of which two are for later.
    assert_eq!(comes_back::<Status>(), 7);
    assert_eq!(comes_back::<AttemptEnd>(), 9);
    assert_eq!(comes_back::<tagwerk_core::Call>(), 18);
    assert_eq!(comes_back::<tagwerk_core::Failure>(), 3 * 6 * 5);
}

#[test]
fn the_ledger_has_a_column_for_each_counter() {
    let place = Place::new();
    let mut columns =
        place.store.writer.conn.prepare("SELECT name FROM pragma_table_info('ledger')").expect("a table");
    let columns: Vec<String> =
        columns.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("names");
    let counters = Counter::ALL.iter().map(|counter| counter.name());
    assert!(std::iter::once("lane").chain(counters).eq(columns.iter().map(String::as_str)));
}
