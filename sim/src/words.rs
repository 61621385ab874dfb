//! Calls, answers and changes in plain words, for people who read a failure.

use tagwerk_core::JobId;
use tagwerk_engine::command::{
    Claim, ClaimAnswer, Enqueued, Holder, LimitAnswer, LimitState, OperateAnswer, Refusal, Said,
};
use tagwerk_engine::row::JobRow;
use tagwerk_engine::store::Listed;

use crate::call::{Answer, Call, Reply, action_name, queue_code, refusal_code, said_name};
use crate::witness::Write;

/// A call in a few words.
pub(crate) fn call(call: &Call) -> String {
    match call {
        Call::Enqueue(request) => {
            let jobs: Vec<String> = request.jobs.iter().take(5).map(order).collect();
            format!("enqueue {:?} {} [{}]", request.mode, request.jobs.len(), jobs.join("; "))
        }
        Call::Claim(claim) => claiming(claim),
        Call::Work(work) => {
            let calls: Vec<String> = work
                .calls
                .iter()
                .map(|call| format!("{} of job {}{}", said(&call.said), call.id, by(&call.holder)))
                .collect();
            let claim = work.claim.as_ref().map(|claim| format!(" and {}", claiming(claim)));
            format!("{}{}", calls.join(", "), claim.unwrap_or_default())
        }
        Call::Operate(call) => {
            let seen = call.seen_version.map_or(String::new(), |seen| format!(" as seen at version {seen}"));
            format!("{} of job {}{seen}, key {:?}", action_name(&call.action), call.id, call.key)
        }
        Call::PutType(put) => format!("settings of type {}: {:?}", put.kind, put.settings),
        Call::Limit(limit) => format!("{limit:?}"),
        Call::Queue(queue) => format!("queue {}: {:?}", queue.queue, queue.control),
    }
}

fn order(job: &tagwerk_engine::command::EnqueueJob) -> String {
    let key = job.key.as_ref().map(|key| format!(" key {key} {:?} {:?}", job.scope, job.on_duplicate));
    let turn =
        job.ordering.as_ref().map(|own| format!(" ordering key {} {:?}", own.key, own.on_head_failure));
    let special = job.special.as_ref().map(|special| {
        let limits: Vec<String> = special.limits.iter().map(ToString::to_string).collect();
        let queue = job.queue.as_deref().unwrap_or_default();
        format!(" in {queue} limits {limits:?} fair key {:?}", special.fair_key)
    });
    let words: String = [key, turn, special].into_iter().flatten().collect();
    format!("{} {:?} {:?}{words}", job.kind, job.start, job.max_age)
}

fn claiming(claim: &Claim) -> String {
    let request = claim.request_id.as_ref().map_or(String::new(), |id| format!(" request {id}"));
    let filter = format!("{:?} {:?}", claim.filter.queues, claim.filter.types);
    format!("claim {} for {} waiting {} ms, {filter}{request}", claim.max_jobs, claim.worker, claim.wait_ms)
}

fn said(said: &Said) -> String {
    match said {
        Said::Report { result: Some(result), .. } => format!("{} with {result}", said_name(said)),
        Said::Lead { follow_ups, .. } => {
            let kinds: Vec<&str> = follow_ups.enqueue.jobs.iter().map(|job| job.kind.as_str()).collect();
            format!("{}: {}", said_name(said), kinds.join(", "))
        }
        Said::Throttle { throttle, .. } => {
            format!("{}, holding {} for {} ms", said_name(said), throttle.limit, throttle.for_ms)
        }
        other => said_name(other).to_owned(),
    }
}

fn by(holder: &Holder) -> String {
    match (&holder.token, &holder.worker) {
        (Some(_), _) => String::new(),
        (None, Some(worker)) => format!(" without a token as {worker}"),
        (None, None) => " without a token".to_owned(),
    }
}

/// An answer in a few words.
pub(crate) fn reply(reply: &Reply) -> String {
    match reply {
        Err(error) => format!("failed: {error}"),
        Ok(Answer::Enqueue(items)) => items.iter().take(20).map(enqueued).collect::<Vec<_>>().join(", "),
        Ok(Answer::Claim(answer)) => claimed(answer),
        Ok(Answer::Work(work)) => {
            let mut words: Vec<String> = work
                .results
                .iter()
                .map(|result| match result {
                    Ok(answer) if answer.replayed => "accepted before".to_owned(),
                    Ok(answer) => format!("accepted, {}", standing(&answer.job.row)),
                    Err(refusal) => refused(refusal),
                })
                .collect();
            words.extend(work.claimed.as_ref().map(claimed));
            words.join("; ")
        }
        Ok(Answer::Operate(Ok(answer))) if answer.replayed => "done before".to_owned(),
        Ok(Answer::Operate(Ok(OperateAnswer { job: Listed::Job(full), .. }))) => {
            format!("done, {}", standing(&full.row))
        }
        Ok(Answer::Operate(Ok(_))) => "done to a damaged job".to_owned(),
        Ok(Answer::Operate(Err(refusal)) | Answer::Limit(Err(refusal))) => refused(refusal),
        Ok(Answer::PutType(known)) => format!("had settings before: {known}"),
        Ok(Answer::Limit(Ok(LimitAnswer::Limits(states)))) => {
            let words: Vec<String> = states.iter().map(limit).collect();
            words.join("; ")
        }
        Ok(Answer::Limit(Ok(LimitAnswer::Put { limit: state, is_new }))) => {
            format!("new: {is_new}, {}", limit(state))
        }
        Ok(Answer::Limit(Ok(LimitAnswer::Deleted))) => "deleted".to_owned(),
        Ok(Answer::Queue(Ok(row))) => {
            let reasons: Vec<&str> = row.paused.iter().map(|pause| pause.reason.as_str()).collect();
            format!("paused for {reasons:?}, draining {}, {:?}", row.draining.is_some(), row.settings)
        }
        Ok(Answer::Queue(Err(refusal))) => format!("refused: {}", queue_code(refusal)),
    }
}

fn enqueued(item: &Result<Enqueued, Refusal>) -> String {
    match item {
        Ok(Enqueued::Created(full)) => format!("created job {}", full.row.job.id),
        Ok(Enqueued::Existing { job, payload_differs, replaced }) => {
            format!("existing job {} (differs {payload_differs}, replaced {replaced:?})", job.row.job.id)
        }
        Ok(Enqueued::Pruned { id, .. }) => format!("remains of job {id}"),
        Err(refusal) => refused(refusal),
    }
}

fn limit(state: &LimitState) -> String {
    let uses: Vec<String> = state
        .uses
        .iter()
        .map(|used| format!("{} runs {}, held until {:?}", used.limit, used.running, used.hold_until))
        .collect();
    format!("{} {:?}: {}", state.row.name, state.row.settings, uses.join(", "))
}

fn claimed(answer: &ClaimAnswer) -> String {
    let ids: Vec<String> = answer.jobs.iter().map(|claimed| claimed.job.row.job.id.to_string()).collect();
    let again = if answer.replayed { " again" } else { "" };
    format!("given{again} [{}]", ids.join(" "))
}

fn refused(refusal: &Refusal) -> String {
    format!("refused: {}", refusal_code(refusal))
}

fn standing(row: &JobRow) -> String {
    let job = &row.job;
    format!("job {} {} v{}", job.id, job.status.name(), job.version)
}

/// The jobs that an answer is about.
pub(crate) fn about(call: &Call, reply: Option<&Reply>) -> Vec<JobId> {
    let mut jobs = call.jobs();
    match reply {
        Some(Ok(Answer::Enqueue(items))) => {
            for item in items {
                match item {
                    Ok(Enqueued::Created(full) | Enqueued::Existing { job: full, .. }) => {
                        jobs.push(full.row.job.id);
                    }
                    Ok(Enqueued::Pruned { id, .. }) => jobs.push(*id),
                    Err(_) => {}
                }
            }
        }
        Some(Ok(Answer::Claim(answer))) => {
            jobs.extend(answer.jobs.iter().map(|claimed| claimed.job.row.job.id));
        }
        Some(Ok(Answer::Work(work))) => {
            let claimed = work.claimed.iter().flat_map(|answer| &answer.jobs);
            jobs.extend(claimed.map(|claimed| claimed.job.row.job.id));
        }
        _ => {}
    }
    jobs
}

/// A committed write in plain words, if it changed where a job stands.
pub(crate) fn write(write: &Write) -> Option<(JobId, String)> {
    match write {
        Write::Insert(insert) => {
            let row = &insert.row;
            let turn = if row.is_blocked() { ", waits for its turn" } else { "" };
            Some((
                row.job.id,
                format!("  job {}: accepted{turn}, due {}", row.job.id, row.job.available_at.as_millis()),
            ))
        }
        Write::Change(change) => {
            let (before, after) = (&change.before.job, &change.after.job);
            let how = if before.status == after.status && before.version == after.version {
                "touched".to_owned()
            } else {
                format!(
                    "{} v{} to {} v{}",
                    before.status.name(),
                    before.version,
                    after.status.name(),
                    after.version
                )
            };
            let lease = after.lease.as_ref().map_or(String::new(), |lease| {
                format!(", held by {} until {}", lease.worker, lease.ends_at().as_millis())
            });
            let failure =
                after.failure.map_or(String::new(), |failure| format!(", {}", failure.reason.name()));
            let counts = format!(
                "attempt {}, retries {}/{}, losses {}, verify {}, due {}",
                after.attempt,
                after.retry_count,
                after.max_retries,
                after.lease_losses,
                after.verify,
                after.available_at.as_millis()
            );
            let turn = if change.after.is_blocked() { ", waits for its turn" } else { "" };
            Some((after.id, format!("  job {}: {how}{lease}{failure}{turn} ({counts})", after.id)))
        }
        Write::Erase(id) => Some((*id, format!("  job {id}: deleted"))),
        Write::Key(_) | Write::Attempt(..) | Write::Limit(..) | Write::Queue(_) => None,
    }
}
