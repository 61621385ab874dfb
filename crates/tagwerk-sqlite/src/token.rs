//! API tokens.

use rusqlite::{Connection, params};
use tagwerk_core::access::{Patterns, Reach, Scope};
use tagwerk_core::rate::Rate;
use tagwerk_core::{Priority, Timestamp};
use tagwerk_engine::row::{TokenHash, TokenRow};

use crate::cells::Cells;
use crate::error::{Fail, Res, is_duplicate};

const SELECT: &str = "SELECT name, scopes, queues, types, ceiling, expires, created, last_used, hash, rate_count, rate_per_ms, space FROM token \
     ORDER BY name";
const INSERT: &str = "INSERT INTO token (name, hash, scopes, queues, types, ceiling, expires, created, rate_count, rate_per_ms, space) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
const DELETE: &str = "DELETE FROM token WHERE name = ?1";
const TOUCH: &str = "UPDATE token SET last_used = max(coalesce(last_used, ?2), ?2) WHERE name = ?1";

/// All tokens by name. One that cannot be read fails them all: whoever it belongs to, its scopes and patterns are unknown.
pub(crate) fn read_all(conn: &Connection) -> Res<Vec<TokenRow>> {
    let mut select = conn.prepare_cached(SELECT)?;
    let mut rows = select.query([])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(decode(Cells(row), row.get(8)?)?);
    }
    Ok(tokens)
}

fn decode(cells: Cells<'_>, hash: [u8; 32]) -> Res<TokenRow> {
    let name = cells.string(0)?;
    let damaged = |what: &str| Fail::Row(format!("token {name:?}: its {what} cannot be read"));
    let scopes = cells.text(1)?.split_whitespace().map(Scope::from_name).collect::<Option<_>>();
    let patterns = |at: usize| -> Res<Patterns> {
        let text = cells.maybe_text(at)?;
        Ok(text.map_or(Patterns::ALL, |text| Patterns::any_of(text.lines().map(str::to_owned).collect())))
    };
    let ceiling = match cells.maybe_narrow(4)?.map(Priority::from_value) {
        Some(None) => return Err(damaged("ceiling")),
        ceiling => ceiling.flatten(),
    };
    let rate = match (cells.maybe_narrow(9)?, cells.maybe_int(10)?) {
        (None, None) => None,
        (Some(count), Some(per_ms)) => Some(Rate { count, per_ms, spread: false }),
        _ => return Err(damaged("rate")),
    };
    Ok(TokenRow {
        rate,
        scopes: scopes.ok_or_else(|| damaged("scopes"))?,
        reach: Reach { queues: patterns(2)?, types: patterns(3)?, ceiling, space: cells.maybe_string(11)? },
        expires_at: cells.maybe_time(5)?,
        created_at: cells.time(6)?,
        last_used_at: cells.maybe_time(7)?,
        hash: TokenHash::from_bytes(hash),
        name,
    })
}

/// Adds a token. `false`: there is one of this name.
pub(crate) fn insert(conn: &Connection, token: &TokenRow) -> Res<bool> {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
    let patterns = |patterns: &Patterns| patterns.list().map(|list| list.join("\n"));
    let inserted = conn.prepare_cached(INSERT)?.execute(params![
        token.name,
        token.hash.bytes(),
        scopes.join(" "),
        patterns(&token.reach.queues),
        patterns(&token.reach.types),
        token.reach.ceiling.map(Priority::value),
        token.expires_at.map(Timestamp::as_millis),
        token.created_at.as_millis(),
        token.rate.map(|rate| rate.count),
        token.rate.map(|rate| rate.per_ms),
        token.reach.space,
    ]);
    match inserted {
        Ok(_) => Ok(true),
        Err(error) if is_duplicate(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes a token. `false`: there is none of this name.
pub(crate) fn delete(conn: &Connection, name: &str) -> Res<bool> {
    Ok(conn.prepare_cached(DELETE)?.execute([name])? > 0)
}

/// Notes when tokens were used.
pub(crate) fn touch(conn: &Connection, used: &[(String, Timestamp)]) -> Res<()> {
    let mut update = conn.prepare_cached(TOUCH)?;
    for (name, at) in used {
        update.execute(params![name, at.as_millis()])?;
    }
    Ok(())
}
