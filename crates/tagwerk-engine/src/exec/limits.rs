//! Calls about limits. They come first in a batch, so that the jobs that are accepted with them meet the limits as written.

use std::collections::{BTreeSet, HashMap};

use crate::command::{LimitAnswer, LimitCall, LimitState, Refusal};
use crate::message::Message;
use crate::row::{LimitRef, LimitRow, TypeSettings};
use crate::store::{StoreResult, Tx};
use crate::work::Env;

/// How many names are told to whoever names an unknown limit, or deletes one that types name.
const LIMITS_NAMED: usize = 1_000;

/// What the calls of a batch led to.
#[derive(Default)]
pub(crate) struct Limited {
    /// Names of all limits, if settings were written.
    pub(crate) names: Option<BTreeSet<String>>,
    /// A limit that was held back is not any more.
    pub(crate) opened: bool,
    /// An answer to each call, in order.
    pub(crate) answers: Vec<Result<LimitAnswer, Refusal>>,
}

/// Executes all calls about limits of a batch.
pub(crate) fn calls(tx: &mut dyn Tx, env: &Env<'_>, messages: &[&Message]) -> StoreResult<Limited> {
    let mut done = Limited::default();
    for message in messages {
        let Message::Limit(call, ..) = message else { continue };
        let names = done.names.as_ref().unwrap_or(env.limits);
        let answer = match call {
            LimitCall::List => Ok(LimitAnswer::Limits(states(tx, env, |_| true)?)),
            LimitCall::Show(name) | LimitCall::Delete(name) | LimitCall::Open(LimitRef { name, .. })
                if !names.contains(name) =>
            {
                Err(Refusal::NoSuchLimit(name.clone()))
            }
            LimitCall::Show(name) => Ok(LimitAnswer::Limits(states(tx, env, |known| known == name)?)),
            LimitCall::Put(name, settings) => {
                let is_new = !tx.put_limit(name, Some(settings))?;
                done.names.get_or_insert_with(|| env.limits.clone()).insert(name.clone());
                let row = LimitRow { name: name.clone(), settings: settings.clone() };
                let limit = Box::new(state(tx, env, row)?);
                Ok(LimitAnswer::Put { limit, is_new })
            }
            LimitCall::Delete(name) => delete(tx, env.types, name)?.map(|()| {
                done.names.get_or_insert_with(|| env.limits.clone()).remove(name);
                LimitAnswer::Deleted
            }),
            LimitCall::Open(limit) => {
                done.opened |= tx.open_limit(limit)?;
                Ok(LimitAnswer::Limits(states(tx, env, |known| *known == limit.name)?))
            }
        };
        done.answers.push(answer);
    }
    Ok(done)
}

/// The first of these limits that there is not.
pub(crate) fn unknown(known: &BTreeSet<String>, named: &[LimitRef]) -> Option<Refusal> {
    let unknown = named.iter().find(|limit| !known.contains(&limit.name))?;
    let known = known.iter().take(LIMITS_NAMED).cloned().collect();
    Some(Refusal::UnknownLimit { name: unknown.name.clone(), known })
}

/// A limit goes if nothing names it: no job that may still run, and no type whose new jobs would be under it.
fn delete(
    tx: &mut dyn Tx,
    types: &HashMap<String, TypeSettings>,
    name: &str,
) -> StoreResult<Result<(), Refusal>> {
    let names = |settings: &TypeSettings| settings.limits.iter().any(|limit| limit.name == *name);
    let mut types: Vec<String> =
        types.iter().filter(|(_, settings)| names(settings)).map(|(kind, _)| kind.clone()).collect();
    types.sort_unstable();
    types.truncate(LIMITS_NAMED);
    let (waiting, running) = tx.limit_jobs(name)?;
    if (waiting, running) == (0, 0) && types.is_empty() {
        // One that is made anew by this name begins anew.
        tx.open_limit(&LimitRef { name: name.to_owned(), partition: String::new() })?;
        tx.put_limit(name, None)?;
        return Ok(Ok(()));
    }
    Ok(Err(Refusal::LimitInUse { name: name.to_owned(), waiting, running, types }))
}

fn states(tx: &mut dyn Tx, env: &Env<'_>, wanted: impl Fn(&str) -> bool) -> StoreResult<Vec<LimitState>> {
    let rows = tx.limits()?;
    rows.into_iter().filter(|row| wanted(&row.name)).map(|row| state(tx, env, row)).collect()
}

fn state(tx: &mut dyn Tx, env: &Env<'_>, row: LimitRow) -> StoreResult<LimitState> {
    let uses = tx.limit_use(&row.name)?;
    Ok(LimitState { row, uses, at: env.now })
}
