//! The ceiling of SQLite with all that is kept of a job: as fast as these rows can be written, by whatever queue.
//!
//! A job is what it is in Tagwerk: a hot row with five partial indexes, a cold row with the payload, for every second job a
//! key, and an attempt when it is over. The statements do what cannot be left out: columns that have a value are bound, a
//! change is guarded by version and state, a claim is one read in order and gives the payload. Nothing else is done: no
//! engine, no HTTP, no counters, no checks of values, nothing decoded that nobody needs, no answers.
//!
//! The tables are written down here and not taken from the product: the ceiling must not move when the product changes. If
//! the product keeps less of a job one day, that is its gain and shows as one; whether the ceiling follows is a decision
//! (`docs/adr/0011-two-ceilings-of-sqlite.md`).

use std::path::Path;

use rusqlite::{Connection, Statement, Transaction, params};

use super::bodies::{key, payload};
use super::conversation::{Driven, Order, Reply, Tally};
use super::sqlite::{FILL_ROWS, open, timed};
use crate::system;

/// The tables.
const SCHEMA: &str = "
CREATE TABLE job (
    id INTEGER PRIMARY KEY, lane INTEGER NOT NULL, prio INTEGER NOT NULL, state INTEGER NOT NULL, due INTEGER NOT NULL,
    expires INTEGER, max_age_ms INTEGER, version INTEGER NOT NULL, flags INTEGER NOT NULL, attempt INTEGER NOT NULL,
    leases INTEGER NOT NULL, retry_count INTEGER NOT NULL, max_retries INTEGER NOT NULL, lease_losses INTEGER NOT NULL,
    max_lease_losses INTEGER NOT NULL, release_count INTEGER NOT NULL, failure INTEGER, payload_bytes INTEGER NOT NULL,
    created INTEGER NOT NULL, updated INTEGER NOT NULL, finished INTEGER, lease_until INTEGER, lease_expires INTEGER,
    time_limit INTEGER, lease_ms INTEGER, claimed INTEGER, lease_bits INTEGER, worker TEXT, request_id TEXT
) STRICT;
CREATE INDEX job_ready   ON job (lane, prio DESC, due) WHERE state = 0;
CREATE INDEX job_lease   ON job (lease_until) WHERE state = 1;
CREATE INDEX job_expires ON job (expires) WHERE expires IS NOT NULL AND state = 0;
CREATE INDEX job_review  ON job (id) WHERE state = 3;
CREATE INDEX job_request ON job (request_id) WHERE request_id IS NOT NULL AND state = 1;

CREATE TABLE detail (
    job INTEGER PRIMARY KEY, subject_kind TEXT, subject_id TEXT, subject_version INTEGER, correlation_id TEXT,
    traceparent TEXT, key TEXT, scope INTEGER, ttl_ms INTEGER, on_duplicate INTEGER, on_mismatch INTEGER,
    lease_ms INTEGER, timeout_ms INTEGER, retry_base_ms INTEGER, retry_factor REAL, retry_cap_ms INTEGER,
    retry_jitter INTEGER, fingerprint BLOB, payload TEXT NOT NULL
) STRICT;
CREATE INDEX detail_subject     ON detail (subject_id, subject_kind) WHERE subject_id IS NOT NULL;
CREATE INDEX detail_correlation ON detail (correlation_id) WHERE correlation_id IS NOT NULL;

CREATE TABLE idem_key (
    key TEXT NOT NULL PRIMARY KEY, owner INTEGER NOT NULL, scope INTEGER NOT NULL, ttl_ms INTEGER NOT NULL,
    fingerprint BLOB NOT NULL, tomb_status INTEGER, tomb_type TEXT, tomb_started INTEGER, tomb_finished INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX idem_tomb ON idem_key (key) WHERE tomb_status IS NOT NULL;

CREATE TABLE attempt (
    job INTEGER NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL, lease_bits INTEGER NOT NULL,
    worker TEXT NOT NULL, claimed INTEGER NOT NULL, lease_expires INTEGER NOT NULL, ended INTEGER NOT NULL,
    outcome INTEGER NOT NULL, late INTEGER NOT NULL, report BLOB, before_retry_count INTEGER,
    before_lease_losses INTEGER, before_verify INTEGER, before_error TEXT, refused INTEGER NOT NULL DEFAULT 0,
    refused_call INTEGER, refused_at INTEGER, error TEXT,
    PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;
";

/// A new job is ready, untouched, and due when it was created. Columns that are not named have no value.
const PUT_JOB: &str = "INSERT INTO job (id, lane, prio, state, due, version, flags, attempt, leases, retry_count,
                           max_retries, lease_losses, max_lease_losses, release_count, payload_bytes, created, updated)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

const PUT_DETAIL: &str = "INSERT INTO detail (job, payload, key, fingerprint) VALUES (?1, ?2, ?3, ?4)";

const PUT_KEY: &str =
    "INSERT INTO idem_key (key, owner, scope, ttl_ms, fingerprint) VALUES (?1, ?2, ?3, ?4, ?5)";

/// What is next, with what a worker is handed.
const READY: &str = "SELECT job.id, job.version, detail.payload
                     FROM job INDEXED BY job_ready CROSS JOIN detail ON detail.job = job.id
                     WHERE job.state = 0 AND job.lane = ?1 ORDER BY job.prio DESC, job.due, job.id LIMIT ?2";

const CLAIM: &str =
    "UPDATE job SET state = 1, version = ?3, flags = ?4, attempt = ?5, leases = ?6, updated = ?7,
                         lease_until = ?8, lease_expires = ?9, lease_ms = ?10, claimed = ?11, lease_bits = ?12, worker = ?13
                     WHERE id = ?1 AND version = ?2 AND state = 0";

const COMPLETE: &str = "UPDATE job SET state = 5, version = ?3, updated = ?4, finished = ?5, lease_until = NULL,
                            lease_expires = NULL, lease_ms = NULL, claimed = NULL, lease_bits = NULL, worker = NULL
                        WHERE id = ?1 AND version = ?2 AND state = 1";

const PUT_ATTEMPT: &str =
    "INSERT INTO attempt (job, seq, number, lease_bits, worker, claimed, lease_expires, ended,
                               outcome, late, report)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

const LANE: i64 = 1;
const WORKER: &str = "bench";
const LEASE_MS: i64 = 300_000;
const KEY_TTL_MS: i64 = 30 * 86_400_000;

/// The time of the first commit in milliseconds since 1970; each later one is a millisecond later. It is a number as long as
/// that of today, which is all that matters about it.
const FIRST_MS: i64 = 1_780_000_000_000;

/// A row that was claimed: what its worker knows.
struct Held {
    id: i64,
    version: i64,
    bits: i64,
}

/// The database.
pub(super) struct Peer {
    database: Connection,
    payload: String,
    now_ms: i64,
    last_id: i64,
}

impl Peer {
    pub(super) fn new(folder: &Path) -> anyhow::Result<Self> {
        let database = open(folder, SCHEMA)?;
        Ok(Self { database, payload: payload(), now_ms: FIRST_MS, last_id: 0 })
    }

    /// Commits of that many jobs until the time is over.
    fn insert(&mut self, rows: usize, until: impl Fn(u64) -> bool) -> anyhow::Result<Tally> {
        timed(until, || self.put(rows))
    }

    /// A commit that claims, a commit that completes.
    fn claim(&mut self, rows: usize, until: impl Fn(u64) -> bool) -> anyhow::Result<Tally> {
        timed(until, || {
            let held = self.take(rows)?;
            self.complete(&held)?;
            Ok(held.len())
        })
    }

    /// Commits new jobs.
    fn put(&mut self, rows: usize) -> anyhow::Result<usize> {
        self.now_ms += 1;
        let (now, bytes) = (self.now_ms, i64::try_from(self.payload.len())?);
        let transaction = self.database.transaction()?;
        let mut job = transaction.prepare_cached(PUT_JOB)?;
        let mut detail = transaction.prepare_cached(PUT_DETAIL)?;
        let mut keys = transaction.prepare_cached(PUT_KEY)?;
        for _ in 0..rows {
            self.last_id += 1;
            let id = self.last_id;
            bind(&mut job, [id, LANE, 50, 0, now, 1, 0, 0, 0, 0, 3, 0, 4, 0, bytes, now, now])?;
            job.raw_execute()?;
            if id % 2 == 0 {
                let (digits, fingerprint) = (key(id.cast_unsigned()), hash(id));
                let key = std::str::from_utf8(&digits)?;
                detail.execute(params![id, self.payload, key, fingerprint])?;
                keys.execute(params![key, id, 1, KEY_TTL_MS, fingerprint])?;
            } else {
                detail.execute(params![id, self.payload, None::<&str>, None::<&[u8]>])?;
            }
        }
        drop((job, detail, keys));
        transaction.commit()?;
        Ok(rows)
    }

    /// Commits a claim of the jobs that are next.
    fn take(&mut self, rows: usize) -> anyhow::Result<Vec<Held>> {
        self.now_ms += 1;
        let (now, until) = (self.now_ms, self.now_ms + LEASE_MS);
        let transaction = self.database.transaction()?;
        let held = ready(&transaction, rows)?;
        let mut claim = transaction.prepare_cached(CLAIM)?;
        for Held { id, version, bits } in &held {
            bind(&mut claim, [*id, *version, version + 1, 1, 1, 1, now, until, until, LEASE_MS, now, *bits])?;
            claim.raw_bind_parameter(13, WORKER)?;
            anyhow::ensure!(claim.raw_execute()? == 1, "job {id} is not as it was read");
        }
        drop(claim);
        transaction.commit()?;
        Ok(held.into_iter().map(|held| Held { version: held.version + 1, ..held }).collect())
    }

    /// Commits the end of these jobs, with an attempt each.
    fn complete(&mut self, held: &[Held]) -> anyhow::Result<()> {
        let claimed = self.now_ms;
        self.now_ms += 1;
        let now = self.now_ms;
        let transaction = self.database.transaction()?;
        let mut complete = transaction.prepare_cached(COMPLETE)?;
        let mut attempt = transaction.prepare_cached(PUT_ATTEMPT)?;
        for Held { id, version, bits } in held {
            bind(&mut complete, [*id, *version, version + 1, now, now])?;
            anyhow::ensure!(complete.raw_execute()? == 1, "job {id} is not as it was left");
            bind(&mut attempt, [*id, 1, 1, *bits])?;
            attempt.raw_bind_parameter(5, WORKER)?;
            for (at, value) in (6..).zip([claimed, claimed + LEASE_MS, now, 1, 0]) {
                attempt.raw_bind_parameter(at, value)?;
            }
            attempt.raw_bind_parameter(11, hash(*id))?;
            attempt.raw_execute()?;
        }
        drop((complete, attempt));
        transaction.commit()?;
        Ok(())
    }
}

/// Binds the first parameters.
fn bind<const N: usize>(statement: &mut Statement<'_>, values: [i64; N]) -> rusqlite::Result<()> {
    (1..).zip(values).try_for_each(|(at, value)| statement.raw_bind_parameter(at, value))
}

/// The jobs that are next, at most so many. Their payloads are read, as whoever hands them out must.
fn ready(transaction: &Transaction<'_>, rows: usize) -> anyhow::Result<Vec<Held>> {
    let mut ready = transaction.prepare_cached(READY)?;
    let mut found = ready.query(params![LANE, i64::try_from(rows)?])?;
    let mut held = Vec::with_capacity(rows);
    while let Some(row) = found.next()? {
        let id = row.get(0)?;
        std::hint::black_box(row.get_ref(2)?.as_bytes()?);
        held.push(Held { id, version: row.get(1)?, bits: scattered(id) });
    }
    Ok(held)
}

/// A number that looks like any other, in place of random lease bits.
const fn scattered(id: i64) -> i64 {
    id.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed())
}

/// Sixteen bytes, in place of a hash of what was sent.
fn hash(id: i64) -> [u8; 16] {
    (u128::from(scattered(id).cast_unsigned()) << 64 | u128::from(id.cast_unsigned())).to_le_bytes()
}

impl Driven for Peer {
    fn carry_out(&mut self, order: &Order) -> anyhow::Result<Reply> {
        let deadline = system::now() + order.time();
        let in_time = move |_| system::now() < deadline;
        let tally = match order.call.as_str() {
            "insert" => self.insert(order.rows, in_time)?,
            "claim" => self.claim(order.rows, in_time)?,
            "fill" => self.insert(FILL_ROWS, |done| done < order.jobs)?,
            _ => return Ok(Reply::Absent("nobody has written it")),
        };
        Ok(Reply::Done(tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::sqlite::tests::{count, folder};

    fn plan(database: &Connection, sql: &str) -> anyhow::Result<String> {
        let mut explain = database.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
        let steps = explain.query_map(params![LANE, 512], |row| row.get::<_, String>(3))?;
        Ok(steps.collect::<Result<Vec<_>, _>>()?.join("; "))
    }

    #[test]
    fn a_job_has_all_its_rows_and_every_second_one_a_key() -> anyhow::Result<()> {
        let folder = folder()?;
        let mut peer = Peer::new(folder.path())?;
        let tally = peer.insert(512, |done| done < 3_000)?;
        assert_eq!((tally.jobs, tally.total), (3_072, 3_072), "whole commits");
        let database = &peer.database;
        assert_eq!(count(database, "job WHERE state = 0 AND version = 1 AND payload_bytes = 150")?, 3_072);
        assert_eq!(count(database, "job JOIN detail ON detail.job = id WHERE length(payload) = 150")?, 3_072);
        let of_its_job = "idem_key JOIN detail ON detail.job = owner
                          WHERE detail.key = idem_key.key AND detail.fingerprint = idem_key.fingerprint
                          AND length(idem_key.key) = 16 AND length(idem_key.fingerprint) = 16";
        assert_eq!((count(database, of_its_job)?, count(database, "idem_key")?), (1_536, 1_536));
        assert_eq!(count(database, "detail WHERE key IS NOT NULL")?, 1_536);
        assert_eq!(count(database, "attempt")?, 0);
        Ok(())
    }

    #[test]
    fn a_drain_ends_every_job_once_and_leaves_an_attempt() -> anyhow::Result<()> {
        let folder = folder()?;
        let mut peer = Peer::new(folder.path())?;
        peer.insert(500, |done| done < 2_000)?;
        let first = peer.claim(512, |done| done < 512)?;
        assert_eq!(first.jobs, 512);
        assert_eq!(count(&peer.database, "job WHERE state = 5 AND id <= 512")?, 512, "the oldest come first");
        assert_eq!(count(&peer.database, "job WHERE state = 0")?, 1_488);
        let rest = peer.claim(512, |_| true)?;
        assert_eq!(rest.jobs, 1_488);
        let ended = "job WHERE state = 5 AND version = 3 AND attempt = 1 AND leases = 1 AND finished = updated
                     AND finished > created AND lease_until IS NULL AND lease_bits IS NULL AND worker IS NULL";
        assert_eq!(count(&peer.database, ended)?, 2_000);
        let of_its_job = "attempt JOIN job ON job.id = attempt.job
                          WHERE seq = 1 AND outcome = 1 AND ended = finished AND attempt.lease_expires - attempt.claimed = 300000
                          AND length(report) = 16";
        assert_eq!((count(&peer.database, of_its_job)?, count(&peer.database, "attempt")?), (2_000, 2_000));
        let sound: String = peer.database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        assert_eq!(sound, "ok");
        Ok(())
    }

    #[test]
    fn a_job_that_was_changed_meanwhile_is_not_completed() -> anyhow::Result<()> {
        let folder = folder()?;
        let mut peer = Peer::new(folder.path())?;
        peer.put(2)?;
        let held = peer.take(2)?;
        assert_eq!(count(&peer.database, "job WHERE state = 1 AND version = 2 AND worker = 'bench'")?, 2);
        peer.database.execute("UPDATE job SET version = 3 WHERE id = 2", [])?;
        let error = peer.complete(&held).expect_err("job 2 has another version");
        assert_eq!(error.to_string(), "job 2 is not as it was left");
        assert_eq!(count(&peer.database, "job WHERE state = 5")?, 0, "the commit is of all or none");
        Ok(())
    }

    #[test]
    fn a_claim_is_one_read_in_order() -> anyhow::Result<()> {
        let folder = folder()?;
        let peer = Peer::new(folder.path())?;
        let plan = plan(&peer.database, READY)?;
        let steps =
            "SEARCH job USING INDEX job_ready (lane=?); SEARCH detail USING INTEGER PRIMARY KEY (rowid=?)";
        assert_eq!(plan, steps);
        Ok(())
    }
}
