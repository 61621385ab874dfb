//! One batch: everything that is executed in one transaction, in phases. The order of the phases does not matter to
//! callers, since none of the commands in a batch has been answered before another was sent; it is chosen so that what
//! becomes free in a batch can be handed out in the same batch.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tagwerk_core::JobId;

use crate::command::{
    AlertAnswer, Claim, ClaimAnswer, LimitAnswer, OperateAnswer, PutType, QueueAnswer, Refusal,
    Work as WorkCommand, WorkAnswer,
};
use crate::exec::claim::Wish;
use crate::exec::limits::Limited;
use crate::exec::queues::{self, Controlled};
use crate::exec::retention::{RetentionReport, Sweep};
use crate::exec::{alerts, audit, calls, claim, enqueue, limits, operate, retention, time};
use crate::message::{EnqueueAnswer, Message};
use crate::parked::{Arrival, Parked};
use crate::row::{Lane, QueueRow, TypeSettings};
use crate::settings::UnknownLimits;
use crate::store::{StoreResult, Tx};
use crate::work::{Effects, Env, View, Work};

/// What the committer knows and a batch reads.
pub(crate) struct Surroundings<'a> {
    pub(crate) parked: &'a Parked,
    pub(crate) avoid: &'a dyn Fn(&str) -> Vec<JobId>,
    pub(crate) services: Services,
    pub(crate) sweep: &'a Sweep,
}

/// Which services run in this batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Services {
    /// None: a batch that failed is tried again one by one, without them.
    Off,
    /// Ends of attempts and of waiting.
    Time,
    /// Also retention.
    TimeAndRetention,
}

/// Answer to one message, before it is delivered.
pub(crate) enum Output {
    Enqueue(EnqueueAnswer),
    /// Empty: it found nothing and may be parked.
    Claim(ClaimAnswer),
    Work(WorkAnswer),
    Operate(Result<OperateAnswer, Refusal>),
    PutType(Box<Result<bool, Refusal>>),
    Limit(Box<Result<LimitAnswer, Refusal>>),
    ControlQueue(QueueAnswer),
    Alert(AlertAnswer),
    Nothing,
}

/// What a batch did, to be made known after the commit.
pub(crate) struct Done {
    pub(crate) outputs: Vec<Output>,
    pub(crate) parked: Served,
    pub(crate) effects: Effects,
    pub(crate) types: Option<HashMap<String, TypeSettings>>,
    /// Names of limits, if they changed.
    pub(crate) limits: Option<BTreeSet<String>>,
    pub(crate) queues: Option<HashMap<String, QueueRow>>,
    pub(crate) overdue: time::Backlog,
    pub(crate) retention: Option<(RetentionReport, Sweep)>,
}

/// How many claims of each kind that wait are tried when settings have changed; how much room they made is for the store to
/// say.
const OPENED_BY_SETTINGS: usize = 32;

/// Executes messages in a transaction. Nothing is committed here.
pub(crate) fn execute(
    tx: &mut dyn Tx,
    env: &Env<'_>,
    messages: &[&Message],
    around: &Surroundings<'_>,
) -> StoreResult<Done> {
    let Put { types, known } = put_types(tx, env, messages)?;
    let Controlled { queues, answers: controlled, resumed } = queues::control(tx, env, messages)?;
    let typed = Env { types: types.as_ref().unwrap_or(env.types), ..*env };
    let Limited { names, opened, answers } = limits::calls(tx, &typed, messages)?;
    let mut early =
        Early { known: known.into_iter(), controlled: controlled.into_iter(), limits: answers.into_iter() };
    let env = Env {
        types: types.as_ref().unwrap_or(env.types),
        queues: queues.as_ref().unwrap_or(env.queues),
        limits: names.as_ref().unwrap_or(env.limits),
        ..*env
    };
    let mut work = Work::new(tx, &env);
    if queues.is_some() || names.is_some() || opened {
        work.effects.opened += OPENED_BY_SETTINGS;
    }
    work.effects.resumed = resumed;
    let overdue = match around.services {
        Services::Off => time::Backlog::None,
        Services::Time | Services::TimeAndRetention => time::end_overdue(&mut work)?,
    };
    let mut outputs = Vec::with_capacity(messages.len());
    preload(&mut work, messages)?;
    for message in messages {
        outputs.push(act(&mut work, message, &mut early)?);
    }
    work.flush()?;
    work.settle_turns()?;
    let offered = work.effects.readied.clone();
    let mut parked = serve_parked(&mut work, around)?;
    serve_new(&mut work, (messages, &mut outputs), around)?;
    audit::write(&mut *work.tx, env.now, (messages, &outputs))?;
    work.settle_turns()?;
    // What a repeated claim found to be over is for the next batch.
    for (lane, n) in &work.effects.readied {
        let fresh = n.saturating_sub(offered.get(lane).copied().unwrap_or_default());
        if fresh > 0 {
            *parked.left.entry(lane.clone()).or_default() += fresh;
        }
    }
    let retention = match around.services {
        Services::Off | Services::Time => None,
        Services::TimeAndRetention => {
            let mut sweep = around.sweep.clone();
            Some((retention::run(&mut work, &mut sweep)?, sweep))
        }
    };
    let effects = work.finish()?;
    let made = (!effects.limits_made.is_empty()).then(|| env.limits | &effects.limits_made);
    let limits = made.or(names);
    Ok(Done { outputs, parked, effects, types, limits, queues, overdue, retention })
}

/// Answers to what is done before everything else, in order.
struct Early {
    known: std::vec::IntoIter<Result<bool, Refusal>>,
    controlled: std::vec::IntoIter<QueueAnswer>,
    limits: std::vec::IntoIter<Result<LimitAnswer, Refusal>>,
}

/// What writing type settings led to.
struct Put {
    /// All settings, if they changed.
    types: Option<HashMap<String, TypeSettings>>,
    /// For each write in order: whether there were settings before, or why it was refused.
    known: Vec<Result<bool, Refusal>>,
}

/// Writes type settings first, so that all other commands of the batch see them.
fn put_types(tx: &mut dyn Tx, env: &Env<'_>, messages: &[&Message]) -> StoreResult<Put> {
    let mut known = Vec::new();
    let mut types: Option<HashMap<String, TypeSettings>> = None;
    for message in messages {
        let Message::PutType(PutType { kind, settings }, ..) = message else { continue };
        let named = settings.as_ref().map_or(&[][..], |settings| &settings.limits);
        if env.settings.unknown_limits == UnknownLimits::Refuse
            && let Some(refusal) = limits::unknown(env.limits, named)
        {
            known.push(Err(refusal));
            continue;
        }
        known.push(Ok(tx.put_type(kind, settings.as_ref())?));
        let types = types.get_or_insert_with(|| env.types.clone());
        match settings {
            Some(settings) => types.insert(kind.clone(), settings.clone()),
            None => types.remove(kind),
        };
    }
    Ok(Put { types, known })
}

/// Reads all rows that the batch names in one go.
fn preload(work: &mut Work<'_>, messages: &[&Message]) -> StoreResult<()> {
    let mut ids: Vec<JobId> = Vec::new();
    let mut keys: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Work(command, _) => ids.extend(command.calls.iter().map(|call| call.id)),
            Message::Operate(call, ..) => ids.push(call.id),
            // Those of a space are read where they are judged.
            Message::Enqueue(command, _)
                if command.reach.as_ref().is_some_and(|reach| reach.space.is_some()) => {}
            Message::Enqueue(command, _) => {
                keys.extend(command.jobs.iter().filter_map(|job| job.key.as_deref()));
            }
            Message::GiveBack(leases) => ids.extend(leases.iter().map(|(id, _)| *id)),
            Message::Claim(..)
            | Message::PutType(..)
            | Message::Limit(..)
            | Message::ControlQueue(..)
            | Message::Alert(..)
            | Message::TouchTokens(..)
            | Message::Drain
            | Message::Stop => {}
        }
    }
    work.load(&ids)?;
    work.load_keys(&keys)
}

/// Everything but handing out.
fn act(work: &mut Work<'_>, message: &Message, early: &mut Early) -> StoreResult<Output> {
    Ok(match message {
        Message::Enqueue(command, _) => Output::Enqueue(enqueue::enqueue(work, command)?),
        Message::Work(command, _) => Output::Work(worker_calls(work, command)?),
        Message::Operate(call, ..) => Output::Operate(operate::operate(work, call)?),
        Message::PutType(..) => {
            early.known.next().map_or(Output::Nothing, |answer| Output::PutType(Box::new(answer)))
        }
        Message::Limit(..) => {
            early.limits.next().map_or(Output::Nothing, |answer| Output::Limit(Box::new(answer)))
        }
        Message::ControlQueue(..) => early.controlled.next().map_or(Output::Nothing, Output::ControlQueue),
        Message::Alert(call, by, _) => Output::Alert(alerts::call(work, call, by)?),
        Message::GiveBack(leases) => {
            for (id, bits) in leases {
                calls::give_back(work, *id, *bits)?;
            }
            Output::Nothing
        }
        Message::TouchTokens(used) => {
            work.tx.touch_tokens(used)?;
            Output::Nothing
        }
        Message::Claim(..) => Output::Claim(ClaimAnswer::default()),
        Message::Drain | Message::Stop => Output::Nothing,
    })
}

fn worker_calls(work: &mut Work<'_>, command: &WorkCommand) -> StoreResult<WorkAnswer> {
    let view = if command.claim.is_some() { View::WithoutPayload } else { View::of(command.calls.len()) };
    let mut results = Vec::with_capacity(command.calls.len());
    for call in &command.calls {
        results.push(calls::worker_call(work, call, view)?);
    }
    Ok(WorkAnswer { results, claimed: None })
}

/// Claims served out of those that wait, and what is left to the next batch.
#[derive(Default)]
pub(crate) struct Served {
    pub(crate) answers: Vec<(Arrival, ClaimAnswer)>,
    pub(crate) left: BTreeMap<Lane, usize>,
}

/// Serves parked claims for which the batch has made jobs claimable, in rounds: what a claim took is known only when it has
/// taken it.
fn serve_parked(work: &mut Work<'_>, around: &Surroundings<'_>) -> StoreResult<Served> {
    let mut round = around.parked.round(&work.effects);
    let mut answers = Vec::new();
    loop {
        let arrivals = around.parked.candidates(&round, work.env.now);
        let claims: Vec<&Claim> = arrivals
            .iter()
            .filter_map(|arrival| around.parked.get(*arrival))
            .map(|parked| &parked.claim)
            .collect();
        if claims.is_empty() {
            return Ok(Served { answers, left: round.left() });
        }
        let wishes = wishes(&work.effects, &claims, around);
        let given = claim::serve(work, &wishes)?;
        for ((arrival, claim), answer) in arrivals.into_iter().zip(claims).zip(given) {
            round.tried(arrival, claim, &answer);
            answers.push((arrival, answer));
        }
    }
}

fn wishes<'c>(effects: &Effects, claims: &[&'c Claim], around: &Surroundings<'_>) -> Vec<Wish<'c>> {
    let wish = |claim: &&'c Claim| {
        let mut avoid = (around.avoid)(&claim.worker);
        avoid.extend(effects.released.iter().filter(|(who, _)| *who == claim.worker).map(|(_, id)| *id));
        Wish { claim, avoid }
    };
    claims.iter().map(wish).collect()
}

/// Serves the claims of the batch.
fn serve_new(
    work: &mut Work<'_>,
    batch: (&[&Message], &mut Vec<Output>),
    around: &Surroundings<'_>,
) -> StoreResult<()> {
    let (messages, outputs) = batch;
    let (mut asked, mut claims) = (Vec::new(), Vec::new());
    for (message, output) in messages.iter().zip(outputs) {
        let claim = match message {
            Message::Claim(claim, _) => Some(claim),
            Message::Work(command, _) => command.claim.as_ref(),
            _ => None,
        };
        if let Some(claim) = claim {
            asked.push(output);
            claims.push(claim);
        }
    }
    let wishes = wishes(&work.effects, &claims, around);
    let given = claim::serve(work, &wishes)?;
    for (output, answer) in asked.into_iter().zip(given) {
        match output {
            Output::Work(work) => work.claimed = Some(answer),
            _ => *output = Output::Claim(answer),
        }
    }
    Ok(())
}
