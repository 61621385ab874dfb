//! Settings of types.

use rusqlite::{Connection, params};
use tagwerk_core::Priority;
use tagwerk_engine::row::{LimitRef, TypeSettings};

use crate::cells::Cells;
use crate::code::Code;
use crate::codec::detail::retry;
use crate::error::{Fail, Res};

const SELECT: &str = "SELECT name, queue, prio, max_retries, max_lease_losses, lease_ms, timeout_ms, max_age_ms, \
     retry_base_ms, retry_factor, retry_cap_ms, retry_jitter, on_unknown, scope, ttl_ms, owner, queues, prio_ceiling, \
     payload_max_bytes, limits, fair_key, ordering_key, on_head_failure, handles_verify FROM type WHERE has_settings = 1 ORDER BY name";
const UPSERT: &str = "INSERT INTO type (name, has_settings, queue, prio, max_retries, max_lease_losses, lease_ms, timeout_ms, \
     max_age_ms, retry_base_ms, retry_factor, retry_cap_ms, retry_jitter, on_unknown, scope, ttl_ms, owner, queues, \
     prio_ceiling, payload_max_bytes, limits, fair_key, ordering_key, on_head_failure, handles_verify) VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, \
     ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) \
     ON CONFLICT (name) DO UPDATE SET has_settings = 1, queue = excluded.queue, prio = excluded.prio, \
     max_retries = excluded.max_retries, max_lease_losses = excluded.max_lease_losses, lease_ms = excluded.lease_ms, \
     timeout_ms = excluded.timeout_ms, max_age_ms = excluded.max_age_ms, retry_base_ms = excluded.retry_base_ms, \
     retry_factor = excluded.retry_factor, retry_cap_ms = excluded.retry_cap_ms, retry_jitter = excluded.retry_jitter, \
     on_unknown = excluded.on_unknown, scope = excluded.scope, ttl_ms = excluded.ttl_ms, owner = excluded.owner, \
     queues = excluded.queues, prio_ceiling = excluded.prio_ceiling, payload_max_bytes = excluded.payload_max_bytes, \
     limits = excluded.limits, fair_key = excluded.fair_key, ordering_key = excluded.ordering_key, \
     on_head_failure = excluded.on_head_failure, handles_verify = excluded.handles_verify";
const CLEAR: &str = "UPDATE type SET has_settings = 0, queue = NULL, prio = NULL, max_retries = NULL, max_lease_losses = NULL, \
     lease_ms = NULL, timeout_ms = NULL, max_age_ms = NULL, retry_base_ms = NULL, retry_factor = NULL, \
     retry_cap_ms = NULL, retry_jitter = NULL, on_unknown = NULL, scope = NULL, ttl_ms = NULL, owner = NULL, \
     queues = NULL, prio_ceiling = NULL, payload_max_bytes = NULL, limits = NULL, fair_key = NULL, ordering_key = NULL, \
     on_head_failure = NULL, handles_verify = 0 WHERE name = ?1";
const EXISTS: &str = "SELECT 1 FROM type WHERE name = ?1 AND has_settings = 1";

/// All settings by name.
pub(crate) fn read_all(conn: &Connection) -> Res<Vec<(String, TypeSettings)>> {
    let mut select = conn.prepare_cached(SELECT)?;
    let mut rows = select.query([])?;
    let mut settings = Vec::new();
    while let Some(row) = rows.next()? {
        settings.push(decode(Cells(row))?);
    }
    Ok(settings)
}

fn decode(cells: Cells<'_>) -> Res<(String, TypeSettings)> {
    let priority = |value: Option<u8>| match value.map(Priority::from_value) {
        Some(None) => Err(Fail::Row("a priority of a type is out of range".to_owned())),
        priority => Ok(priority.flatten()),
    };
    let settings = TypeSettings {
        queue: cells.maybe_string(1)?,
        priority: priority(cells.maybe_narrow(2)?)?,
        max_retries: cells.maybe_narrow(3)?,
        max_lease_losses: cells.maybe_narrow(4)?,
        lease_ms: cells.maybe_int(5)?,
        timeout_ms: cells.maybe_int(6)?,
        max_age_ms: cells.maybe_int(7)?,
        retry: retry(cells, 8)?,
        on_unknown: cells.maybe_code(12)?,
        scope: cells.maybe_code(13)?,
        ttl_ms: cells.maybe_int(14)?,
        owner: cells.maybe_string(15)?,
        queues: cells.maybe_string(16)?.map(|names| names.split(',').map(str::to_owned).collect()),
        priority_ceiling: priority(cells.maybe_narrow(17)?)?,
        payload_max_bytes: cells.maybe_narrow(18)?,
        limits: cells
            .maybe_string(19)?
            .map_or_else(Vec::new, |names| names.lines().map(LimitRef::parse).collect()),
        fair_key: cells.maybe_string(20)?,
        ordering_key: cells.maybe_string(21)?.map(Into::into),
        on_head_failure: cells.maybe_code(22)?,
        handles_verify: cells.flag(23)?,
    };
    Ok((cells.string(0)?, settings))
}

/// Writes or deletes the settings of a type. Returns whether there were any before.
pub(crate) fn write(conn: &Connection, kind: &str, settings: Option<&TypeSettings>) -> Res<bool> {
    let existed = conn.prepare_cached(EXISTS)?.exists([kind])?;
    let Some(settings) = settings else {
        conn.prepare_cached(CLEAR)?.execute([kind])?;
        return Ok(existed);
    };
    conn.prepare_cached(UPSERT)?.execute(params![
        kind,
        settings.queue,
        settings.priority.map(Priority::value),
        settings.max_retries,
        settings.max_lease_losses,
        settings.lease_ms,
        settings.timeout_ms,
        settings.max_age_ms,
        settings.retry.base_ms,
        settings.retry.factor,
        settings.retry.cap_ms,
        settings.retry.jitter.map(Code::code),
        settings.on_unknown.map(Code::code),
        settings.scope.map(Code::code),
        settings.ttl_ms,
        settings.owner,
        settings.queues.as_ref().map(|names| names.join(",")),
        settings.priority_ceiling.map(Priority::value),
        settings.payload_max_bytes,
        limits(settings),
        settings.fair_key,
        settings.ordering_key.as_deref(),
        settings.on_head_failure.map(Code::code),
        settings.handles_verify,
    ])?;
    Ok(existed)
}

fn limits(settings: &TypeSettings) -> Option<String> {
    let names: Vec<String> = settings.limits.iter().map(ToString::to_string).collect();
    (!names.is_empty()).then(|| names.join("\n"))
}
