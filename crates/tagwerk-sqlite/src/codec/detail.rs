//! The cold row.

use rusqlite::{Connection, OptionalExtension, Statement};
use tagwerk_core::{JobId, OnHeadFailure, RetryOverrides};
use tagwerk_engine::row::{Detail, Ordering, Subject};

use crate::cells::Cells;
use crate::code::Code;
use crate::codec::job::{Depth, bind_some};
use crate::error::{Fail, Res};

/// The columns in the order in which [`decode`] reads and [`bind`] numbers them (`?1` is the job).
macro_rules! detail_columns {
    () => {
        "subject_kind, subject_id, subject_version, correlation_id, traceparent, key, scope, ttl_ms, on_duplicate, \
         on_mismatch, lease_ms, timeout_ms, retry_base_ms, retry_factor, retry_cap_ms, retry_jitter, fingerprint, \
         supersede, ordering"
    };
}

const SELECT_LIST: &str = concat!("SELECT ", detail_columns!(), " FROM detail WHERE job = ?1");
/// Reads a cold row.
pub(crate) const SELECT_FULL: &str =
    concat!("SELECT ", detail_columns!(), ", payload FROM detail WHERE job = ?1");
const SELECT_ORDERING: &str = "SELECT ordering FROM detail WHERE job = ?1";
const SELECT_KEY: &str = "SELECT key FROM detail WHERE job = ?1";
/// Adds a cold row.
pub(crate) const INSERT: &str = concat!(
    "INSERT INTO detail (job, ",
    detail_columns!(),
    ", payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"
);

/// The ordering key with which a job came.
pub(crate) fn read_ordering(conn: &Connection, job: JobId) -> Res<Option<Ordering>> {
    read_text(conn, SELECT_ORDERING, job)?.map(|text| ordering(&text)).transpose()
}

fn read_text(conn: &Connection, sql: &str, job: JobId) -> Res<Option<String>> {
    let decode = |row: &rusqlite::Row<'_>| Ok(Cells(row).maybe_string(0));
    let found = conn.prepare_cached(sql)?.query_row([job.0], decode).optional()?;
    found.transpose().map(Option::flatten)
}

/// The cold part of a job; `None` where there is none.
pub(crate) fn read(conn: &Connection, job: JobId, depth: Depth) -> Res<Option<Detail>> {
    let sql = match depth {
        Depth::Full => SELECT_FULL,
        Depth::List => SELECT_LIST,
    };
    query(&mut *conn.prepare_cached(sql)?, job, depth)
}

/// The same by a statement that is prepared for this depth.
pub(crate) fn query(select: &mut Statement<'_>, job: JobId, depth: Depth) -> Res<Option<Detail>> {
    let decode = |row: &rusqlite::Row<'_>| Ok(decode(Cells(row), depth));
    let found = select.query_row([job.0], decode).optional()?;
    found.transpose().map_err(|fail| match fail {
        Fail::Row(why) => Fail::Row(format!("job {job}: {why}")),
        other => other,
    })
}

/// The idempotency key with which a job came.
pub(crate) fn read_key(conn: &Connection, job: JobId) -> Res<Option<String>> {
    read_text(conn, SELECT_KEY, job)
}

fn decode(cells: Cells<'_>, depth: Depth) -> Res<Detail> {
    let kind = cells.maybe_string(0)?;
    let subject = match (kind, cells.maybe_string(1)?) {
        (Some(kind), Some(id)) => Some(Subject { kind, id, version: cells.maybe_int(2)? }),
        (None, None) => None,
        _ => return Err(Fail::Row("its subject has a kind or an id, but not both".to_owned())),
    };
    Ok(Detail {
        payload: if depth == Depth::Full { cells.string(19)? } else { String::new() },
        subject,
        correlation_id: cells.maybe_string(3)?,
        traceparent: cells.maybe_string(4)?,
        key: cells.maybe_string(5)?,
        scope: cells.maybe_code(6)?,
        ttl_ms: cells.maybe_int(7)?,
        on_duplicate: cells.maybe_code(8)?,
        on_mismatch: cells.maybe_code(9)?,
        lease_ms: cells.maybe_int(10)?,
        timeout_ms: cells.maybe_int(11)?,
        retry: retry(cells, 12)?,
        fingerprint: cells.maybe_hash(16)?,
        supersede: cells.maybe_int(17)?.is_some(),
        ordering: cells.maybe_string(18)?.map(|text| ordering(&text).map(Box::new)).transpose()?,
    })
}

/// An ordering key with the letter before it.
fn ordering(text: &str) -> Res<Ordering> {
    let on_head_failure = match text.as_bytes().first() {
        Some(b'-') => None,
        Some(b'b') => Some(OnHeadFailure::Block),
        Some(b's') => Some(OnHeadFailure::Skip),
        _ => return Err(Fail::Row("column `ordering` begins with a letter from another version".to_owned())),
    };
    Ok(Ordering { key: text.get(1..).unwrap_or_default().into(), on_head_failure })
}

fn ordering_text(ordering: &Ordering) -> String {
    let letter = match ordering.on_head_failure {
        None => '-',
        Some(OnHeadFailure::Block) => 'b',
        Some(OnHeadFailure::Skip) => 's',
    };
    format!("{letter}{}", ordering.key)
}

/// Back-off fields in four columns from `at` on.
pub(crate) fn retry(cells: Cells<'_>, at: usize) -> Res<RetryOverrides> {
    Ok(RetryOverrides {
        base_ms: cells.maybe_int(at)?,
        factor: cells.maybe_real(at + 1)?,
        cap_ms: cells.maybe_int(at + 2)?,
        jitter: cells.maybe_code(at + 3)?,
    })
}

/// Binds a cold row to the parameters of [`INSERT`].
pub(crate) fn bind(statement: &mut Statement<'_>, job: JobId, detail: &Detail) -> Res<()> {
    statement.clear_bindings();
    statement.raw_bind_parameter(1, job.0)?;
    if let Some(subject) = &detail.subject {
        bind_some(statement, 2, [Some(&subject.kind), Some(&subject.id)])?;
        bind_some(statement, 4, [subject.version])?;
    }
    bind_some(
        statement,
        5,
        [&detail.correlation_id, &detail.traceparent, &detail.key].map(Option::as_deref),
    )?;
    let numbers: [Option<i64>; 7] = [
        detail.scope.map(Code::code),
        detail.ttl_ms,
        detail.on_duplicate.map(Code::code),
        detail.on_mismatch.map(Code::code),
        detail.lease_ms,
        detail.timeout_ms,
        detail.retry.base_ms,
    ];
    bind_some(statement, 8, numbers)?;
    bind_some(statement, 15, [detail.retry.factor])?;
    bind_some(statement, 16, [detail.retry.cap_ms, detail.retry.jitter.map(Code::code)])?;
    bind_some(statement, 18, [detail.fingerprint.as_ref().map(<[u8; 16]>::as_slice)])?;
    if detail.supersede {
        statement.raw_bind_parameter(19, 1)?;
    }
    if let Some(ordering) = &detail.ordering {
        statement.raw_bind_parameter(20, ordering_text(ordering))?;
    }
    statement.raw_bind_parameter(21, detail.payload.as_str())?;
    Ok(())
}
