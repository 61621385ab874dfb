//! Calls about limits. They come first in a batch, so that the jobs that are accepted with them meet the limits as written.

use std::collections::BTreeSet;

use tagwerk_core::gate::LimitSettings;

use crate::command::{Enqueue, LimitAnswer, LimitCall, LimitState, Refusal};
use crate::message::Message;
use crate::row::LimitRow;
use crate::settings::UnknownLimits;
use crate::store::{StoreResult, Tx};
use crate::work::Env;

/// What the calls of a batch led to.
#[derive(Default)]
pub(crate) struct Limited {
    /// Names of all limits, if settings were written.
    pub(crate) names: Option<BTreeSet<String>>,
    /// An answer to each call, in order.
    pub(crate) answers: Vec<Result<LimitAnswer, Refusal>>,
}

/// Executes all calls about limits of a batch.
pub(crate) fn calls(tx: &mut dyn Tx, env: &Env<'_>, messages: &[&Message]) -> StoreResult<Limited> {
    let mut done = Limited::default();
    for message in messages {
        if let Message::Enqueue(request, _) = message
            && env.settings.unknown_limits == UnknownLimits::Create
        {
            create_on_use(tx, env, (request, &mut done.names))?;
        }
        let Message::Limit(call, _) = message else { continue };
        let names = done.names.as_ref().unwrap_or(env.limits);
        let answer = match call {
            LimitCall::List => Ok(LimitAnswer::Limits(states(tx, env, |_| true)?)),
            LimitCall::Show(name) | LimitCall::Delete(name) if !names.contains(name) => {
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
            LimitCall::Delete(name) => match tx.limit_jobs(name)? {
                (0, 0) => {
                    tx.put_limit(name, None)?;
                    done.names.get_or_insert_with(|| env.limits.clone()).remove(name);
                    Ok(LimitAnswer::Deleted)
                }
                (waiting, running) => Err(Refusal::LimitInUse { name: name.clone(), waiting, running }),
            },
        };
        done.answers.push(answer);
    }
    Ok(done)
}

/// Makes the limits that jobs name and that there are not. They bound nothing until somebody says more.
fn create_on_use(
    tx: &mut dyn Tx,
    env: &Env<'_>,
    (request, names): (&Enqueue, &mut Option<BTreeSet<String>>),
) -> StoreResult<()> {
    for limit in
        request.jobs.iter().filter_map(|job| job.special.as_ref()).flat_map(|special| &special.limits)
    {
        if !names.as_ref().unwrap_or(env.limits).contains(&limit.name) {
            tx.put_limit(&limit.name, Some(&LimitSettings::default()))?;
            names.get_or_insert_with(|| env.limits.clone()).insert(limit.name.clone());
        }
    }
    Ok(())
}

fn states(tx: &mut dyn Tx, env: &Env<'_>, wanted: impl Fn(&str) -> bool) -> StoreResult<Vec<LimitState>> {
    let rows = tx.limits()?;
    rows.into_iter().filter(|row| wanted(&row.name)).map(|row| state(tx, env, row)).collect()
}

fn state(tx: &mut dyn Tx, env: &Env<'_>, row: LimitRow) -> StoreResult<LimitState> {
    let uses = tx.limit_use(&row.name)?;
    Ok(LimitState { row, uses, at: env.now })
}
