//! Jobs as people read them.

use tagwerk_client::api::answer::{AttemptsPage, Effect, Explain, Job, JobSummary};
use tagwerk_client::api::request::Subject;
use tagwerk_client::api::{Seconds, Status, Time};
use tagwerk_core::limits;

use crate::cli::show::{duration, line, lines, maybe, maybe_time, short, time};
use crate::cli::table::{list, table};

/// Width of a column of free text.
const TEXT_CHARS: usize = 48;

/// `2/4`: the second of four runs.
pub(crate) fn runs(job: &JobSummary) -> String {
    format!("{}/{}", job.attempt, u64::from(job.attempt) + u64::from(job.attempts_left))
}

/// `order:4711`, or the key, or nothing: what the job is about.
pub(crate) fn about(job: &JobSummary) -> String {
    let subject = job.subject.as_ref().map(subject);
    subject
        .or_else(|| job.idempotency_key.clone())
        .map_or_else(|| "-".to_owned(), |text| short(&text, TEXT_CHARS))
}

fn subject(subject: &Subject) -> String {
    let version = subject.version.map(|version| format!(" (version {version})")).unwrap_or_default();
    line(&format!("{}:{}{version}", subject.kind, subject.id))
}

/// A list.
pub(super) fn jobs(jobs: &[JobSummary]) -> String {
    let rows = jobs.iter().map(|job| {
        [
            job.id.to_string(),
            job.status.to_string(),
            line(&job.job_type),
            line(&job.queue),
            runs(job),
            time(job.updated_at),
            about(job),
        ]
    });
    table(["ID", "STATUS", "TYPE", "QUEUE", "RUN", "UPDATED", "ABOUT"], rows.collect(), "no jobs")
}

/// `job 17 is pending, due 2026-07-01 12:00:00Z`
pub(crate) fn moved(job: &JobSummary) -> String {
    let more = match (job.status, &job.failure) {
        (Status::Failed, Some(failure)) => format!(" ({})", failure.reason),
        (Status::Pending, _) => format!(", due {}", time(job.available_at)),
        (Status::Running, _) if job.cancel_requested => {
            ", to be cancelled at its worker's next call".to_owned()
        }
        _ => String::new(),
    };
    format!("job {} is {}{more}", job.id, job.status)
}

/// Everything about one.
pub(super) fn job(job: &Job) -> String {
    let Job { summary, payload, checkpoint, result, effects } = job;
    let mut rows = state(summary);
    rows.extend(settings(summary));
    let json = |json: &tagwerk_client::api::Json| lines(json.as_str());
    rows.push(("error", summary.error.as_deref().map(lines)));
    rows.push(("payload", Some(json(payload))));
    rows.push(("checkpoint", checkpoint.as_ref().map(json)));
    rows.push(("result", result.as_ref().map(json)));
    rows.push(("effects", (!effects.is_empty()).then(|| self::effects(effects))));
    list(rows)
}

fn effects(effects: &[Effect]) -> String {
    let line = |effect: &Effect| {
        let assumed = if effect.assumed { ", says a person" } else { "" };
        format!("{} {}{assumed}, key {}", line(&effect.name), effect.state, line(&effect.key))
    };
    effects.iter().map(line).collect::<Vec<_>>().join("; ")
}

type Rows = Vec<(&'static str, Option<String>)>;

fn in_doubt(job: &JobSummary) -> Option<String> {
    let names: Vec<String> = job.effects_in_doubt.iter().map(|effect| line(&effect.name)).collect();
    (!names.is_empty()).then(|| format!("{}: it may have happened, look it up by its key", names.join(", ")))
}

fn state(job: &JobSummary) -> Rows {
    let yes = |flag: bool, text: &str| flag.then(|| text.to_owned());
    let when = |at: Option<Time>| at.map(time);
    let failure = job.failure.as_ref();
    vec![
        ("id", Some(job.id.to_string())),
        ("type", Some(line(&job.job_type))),
        ("queue", Some(line(&job.queue))),
        ("status", Some(job.status.to_string())),
        (
            "failure",
            failure.map(|failure| {
                format!("{} (class {}, cause {})", failure.reason, failure.class, failure.cause)
            }),
        ),
        ("version", Some(job.version.to_string())),
        ("priority", Some(format!("{} ({})", job.priority, job.priority_value))),
        ("runs", Some(format!("{}, {} left", job.attempt, job.attempts_left))),
        ("retries", Some(format!("{} of {}", job.retry_count, job.max_retries))),
        ("lease losses", Some(format!("{} of {}", job.lease_losses, job.max_lease_losses))),
        ("released", (job.release_count > 0).then(|| format!("{} times", job.release_count))),
        ("in doubt", in_doubt(job)),
        ("verify", yes(job.verify, "yes: an earlier attempt may have done it")),
        ("cancel", yes(job.cancel_requested, "at its worker's next call or the end of its lease")),
        ("superseded by", job.superseded_by.map(|newer| format!("job {newer}, which has a newer version"))),
        ("created", Some(time(job.created_at))),
        ("due", (job.status == Status::Pending).then(|| time(job.available_at))),
        ("expires", when(job.expires_at)),
        ("worker", job.worker_id.as_deref().map(line)),
        ("claimed", when(job.claimed_at)),
        ("lease until", when(job.lease_expires_at)),
        ("progress", job.progress.as_ref().map(progress)),
        ("updated", Some(time(job.updated_at))),
        ("finished", when(job.finished_at)),
    ]
}

fn settings(job: &JobSummary) -> Rows {
    let length = |length: Option<Seconds>| length.map(duration);
    let name = |name: Option<&'static str>| name.map(str::to_owned);
    vec![
        ("key", job.idempotency_key.as_deref().map(line)),
        ("key scope", name(job.idempotency_scope.map(tagwerk_client::api::IdempotencyScope::name))),
        ("key ttl", length(job.idempotency_ttl_seconds)),
        ("subject", job.subject.as_ref().map(subject)),
        ("correlation", job.correlation_id.as_deref().map(line)),
        ("ordering key", job.ordering_key.as_deref().map(line)),
        ("blocked by", job.blocked_by.map(|id| id.to_string())),
        ("blocks", job.blocks.map(blocked)),
        ("fair key", job.fair_key.as_deref().map(line)),
        ("owner", job.owner.as_deref().map(line)),
        ("lease", length(job.lease_seconds)),
        ("timeout", length(job.timeout_seconds)),
        ("max age", length(job.max_age_seconds)),
        ("back-off", job.retry.as_ref().map(super::super::types::backoff)),
        ("if unknown", Some(job.on_unknown.to_string())),
    ]
}

/// `17 of 300: rows`
pub(crate) fn progress(progress: &tagwerk_client::api::request::Progress) -> String {
    let done = progress.done.map(|done| done.to_string());
    let total = progress.total.map(|total| format!("of {total}"));
    let message = progress.message.as_deref().map(|message| format!("({})", short(message, TEXT_CHARS)));
    [done, total, message].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The attempts, and what operators did.
pub(super) fn history(page: &AttemptsPage) -> String {
    let rows = page.attempts.iter().map(|attempt| {
        let outcome = attempt.outcome.map_or("running", tagwerk_client::api::AttemptOutcome::name);
        let class = attempt.class.map(|class| format!(" {class}")).unwrap_or_default();
        let late = if attempt.late { " (late)" } else { "" };
        [
            attempt.number.to_string(),
            line(&attempt.worker_id),
            time(attempt.claimed_at),
            maybe_time(attempt.ended_at),
            format!("{outcome}{class}{late}"),
            attempt.error.as_deref().map_or_else(|| "-".to_owned(), |error| short(error, TEXT_CHARS)),
        ]
    });
    let mut text =
        table(["RUN", "WORKER", "CLAIMED", "ENDED", "OUTCOME", "ERROR"], rows.collect(), "no attempts");
    if page.omitted > 0 {
        text = format!("{text}\n{} older attempts are no longer kept", page.omitted);
    }
    if !page.actions.is_empty() {
        let rows = page.actions.iter().map(|action| {
            [
                time(action.at),
                action.action.to_string(),
                action.version.to_string(),
                maybe(action.reason.as_deref()),
            ]
        });
        text = format!("{text}\n\n{}", table(["AT", "ACTION", "VERSION", "REASON"], rows.collect(), ""));
    }
    text
}

/// Why it stands where it stands.
pub(super) fn explain(explain: &Explain) -> String {
    let position = match explain.position {
        Some(0) => ", next to be handed out".to_owned(),
        Some(position) if position > limits::POSITION_EXACT_MAX => {
            format!(", more than {} jobs are before it", limits::POSITION_EXACT_MAX)
        }
        Some(position) => format!(", {position} jobs are before it"),
        None => String::new(),
    };
    let mut text = vec![format!("job {} is {}{position}", explain.id, explain.status)];
    for reason in &explain.reasons {
        text.push(format!("{}: {}", reason.kind, line(&reason.detail)));
        let facts = [
            reason.since.map(|since| format!("since {}", time(since))),
            reason.until.map(|until| format!("until {}", time(until))),
            reason.freed_by.as_deref().map(|freed_by| format!("freed by {}", line(freed_by))),
        ];
        let facts: Vec<_> = facts.into_iter().flatten().collect();
        if !facts.is_empty() {
            text.push(format!("    {}", facts.join("; ")));
        }
    }
    text.join("\n")
}

/// How many jobs wait for one in review: exact to 1000.
pub(crate) fn blocked(n: u32) -> String {
    match n {
        1 => "1 job".to_owned(),
        0..=1000 => format!("{n} jobs"),
        _ => "1000+ jobs".to_owned(),
    }
}
