//! The whole state machine on one page: every event, by every kind of caller, in every kind of state, as a snapshot that
//! a person can read beside the rules.

#[expect(dead_code, reason = "the scene serves the other tests too")]
mod scene;

use std::fmt::Write as _;

use scene::{LEASE_MS, Scene, Token, bits, completed, failed, force_fail, plain, released, report};
use tagwerk_core::{
    Action, Answer, Attempt, Caller, Effect, EffectCall, EffectState, ErrorClass, Event, History, JobId,
    Outcome, Rejection, Status, Step, decide, overdue,
};

/// Brings a job into the state that a row or column is about.
type Setup = fn(&mut Scene);

/// Every kind of state. Before each of them comes a prelude, see [`stage`].
const STATES: [(&str, Setup); 19] = [
    ("pending, new", |_| {}),
    ("pending after failure", |s| run(s, failed(ErrorClass::Transient))),
    ("pending after release", |s| run(s, released(0))),
    ("pending after loss", |s| {
        s.wait_until_due().lose("w");
    }),
    ("pending after time-out", |s| {
        s.wait_until_due().time_out("w");
    }),
    ("pending, retried from review", |s| {
        lost_for_good(s).retry();
    }),
    ("running", |s| {
        s.wait_until_due().claim("w");
    }),
    ("running, asked to stop", |s| {
        s.wait_until_due().claim("w");
        s.operate(Action::Cancel { wait: true });
    }),
    ("running, superseded", |s| {
        s.wait_until_due().claim("w");
        s.supersede();
    }),
    ("failed by loss, superseded", |s| {
        lost_for_good(s).supersede();
    }),
    ("cancelled by a newer version", |s| {
        s.supersede();
    }),
    ("completed", |s| run(s, completed())),
    ("failed, reported", |s| run(s, failed(ErrorClass::Permanent))),
    ("failed by loss", |s| {
        lost_for_good(s);
    }),
    ("failed by age after loss", |s| {
        s.wait_until_due().lose("w");
        s.job.expires_at = Some(s.ctx.now);
        s.settle();
    }),
    ("failed by force", |s| {
        s.wait_until_due().claim("w");
        s.operate(force_fail());
    }),
    ("cancelled while pending", |s| {
        s.operate(Action::Cancel { wait: false });
    }),
    ("cancelled while running", |s| {
        s.wait_until_due().claim("w");
        s.operate(Action::Cancel { wait: false });
    }),
    ("cancelled when its lease ended", |s| {
        s.wait_until_due().claim("w");
        s.operate(Action::Cancel { wait: true });
        s.wait(LEASE_MS).settle();
    }),
];

fn run(s: &mut Scene, outcome: Outcome) {
    let token = s.wait_until_due().claim("w");
    s.report(token, outcome);
}

fn lost_for_good(s: &mut Scene) -> &mut Scene {
    let losses = std::mem::replace(&mut s.job.max_lease_losses, 1);
    s.wait_until_due().lose("w");
    s.job.max_lease_losses = losses;
    s
}

/// What happened before: nothing, a lost lease, or a reported failure.
const NOTHING: Setup = |_| {};
const LOSS: Setup = |s| {
    s.lose("old");
};
const FAILURE: Setup = |s| run(s, failed(ErrorClass::Transient));

/// A plain job with its past, brought into a state.
fn stage(prelude: Setup, state: Setup) -> Scene {
    let mut s = plain();
    prelude(&mut s);
    state(&mut s);
    s.wait(1).settle();
    s
}

/// The token of the lease in the prelude.
const OLD: Token = Token(1);

/// Who calls in a state, with the job as they find it.
type Casting = fn(Setup) -> Option<(Scene, Caller)>;

/// The columns: who calls. `None` where there is nobody of this kind in a state.
const CALLERS: [(&str, Casting); 9] = [
    ("T live", |state| {
        let s = stage(NOTHING, state);
        let caller = s.job.lease.is_some().then(|| Caller::Live(bits(s.job.leases)));
        caller.map(|caller| (s, caller))
    }),
    ("N newest", |state| {
        let s = stage(NOTHING, state);
        let newest = s.history.last().filter(|newest| newest.seq == s.job.leases).cloned();
        newest.map(|newest| (s, Caller::Past(Box::new(newest))))
    }),
    ("X older, lost", |state| older(stage(LOSS, state))),
    ("R older, reported", |state| older(stage(FAILURE, state))),
    ("? unknown", |state| Some((stage(NOTHING, state), Caller::Stranger))),
    ("none", |state| without_token(stage(NOTHING, state), None)),
    ("none, as holder", |state| without_token(stage(NOTHING, state), Some("w"))),
    ("none, as another", |state| without_token(stage(NOTHING, state), Some("v"))),
    ("none, older loss", |state| {
        let s = stage(LOSS, state);
        if s.job.leases > 1 { without_token(s, None) } else { None }
    }),
];

/// With nothing newer the older lease is the newest one, which has its own column.
fn older(s: Scene) -> Option<(Scene, Caller)> {
    let caller = s.caller(OLD);
    if s.job.leases > 1 { Some((s, caller)) } else { None }
}

#[expect(clippy::unnecessary_wraps, reason = "one signature for all columns")]
fn without_token(s: Scene, worker: Option<&str>) -> Option<(Scene, Caller)> {
    let caller = s.no_token(worker);
    Some((s, caller))
}

type MakeEvent = fn(Caller) -> Event;

/// What the callers do.
const CALLS: [(&str, MakeEvent); 7] = [
    ("heartbeat", Event::Heartbeat),
    ("checkpoint", Event::Checkpoint),
    ("complete", |caller| Event::Report(caller, report(completed()))),
    ("fail transient", |caller| Event::Report(caller, report(failed(ErrorClass::Transient)))),
    ("fail permanent", |caller| Event::Report(caller, report(failed(ErrorClass::Permanent)))),
    ("fail unknown", |caller| Event::Report(caller, report(failed(ErrorClass::Unknown)))),
    ("release", |caller| Event::Report(caller, report(released(0)))),
];

type MakeAction = fn() -> Action;

const ACTIONS: [(&str, MakeAction); 9] = [
    ("cancel", || Action::Cancel { wait: false }),
    ("cancel, wait", || Action::Cancel { wait: true }),
    ("retry", || Action::Retry { max_retries: None }),
    ("retry, forced", || Action::ForceRetry { max_retries: None }),
    ("discard", || Action::Discard),
    ("force-fail", force_fail),
    ("delete", || Action::Delete),
    ("replace", || Action::Replace { available_at: scene::at(9_000_000) }),
    ("unblock", || Action::Unblock),
];

/// What a decision did, in a few words.
fn cell(s: &Scene, event: &Event) -> String {
    match decide(&s.job, event, &s.ctx) {
        Err(rejection) => refusal(&rejection),
        Ok(Step { job, history, answer }) => {
            let mut text = match answer {
                Answer::Replayed => return "200 replayed".to_owned(),
                Answer::Refused(rejection) => format!("{} ", refusal(&rejection)),
                Answer::Done => String::new(),
            };
            let same = job.status == s.job.status && history == History::Unchanged;
            let _ = write!(text, "{} {}", if same { "=" } else { "→" }, standing(&job));
            if matches!(&history, History::Amend(attempt) if is_amended(attempt)) {
                text.push_str(" (late)");
            }
            text
        }
    }
}

fn is_amended(attempt: &Attempt) -> bool {
    attempt.late && attempt.report.is_some() && attempt.before.is_none()
}

/// Status, with the retries used while pending, and the reason while failed.
fn standing(job: &tagwerk_core::Job) -> String {
    let mut text = job.status.name().to_owned();
    match job.failure {
        Some(failure) => text = format!("{text} {}", failure.reason.name()),
        None if job.status == Status::Pending => {
            let _ = write!(text, " r{}{}", job.retry_count, if job.verify { " verify" } else { "" });
        }
        None => {}
    }
    text
}

fn refusal(rejection: &Rejection) -> String {
    let may = |may_report: &bool| if *may_report { " may_report" } else { "" };
    match rejection {
        Rejection::LeaseLost { may_report } => format!("409 lease-lost{}", may(may_report)),
        Rejection::TimedOut { may_report } => format!("409 timed-out{}", may(may_report)),
        Rejection::Cancelled => "409 cancelled".to_owned(),
        Rejection::Superseded { may_force, .. } => {
            format!("409 superseded{}", if *may_force { " may_force" } else { "" })
        }
        Rejection::NotRunning { .. } => "409 not-running".to_owned(),
        Rejection::AlreadyReported { .. } => "409 already-reported".to_owned(),
        Rejection::LeaseRequired => "409 lease-required".to_owned(),
        Rejection::EffectsOpen { .. } => "409 effects-open".to_owned(),
        Rejection::EffectNotBegun => "409 effect-not-begun".to_owned(),
        Rejection::EffectFinished => "409 effect-finished".to_owned(),
        Rejection::TooManyEffects => "409 too-many-effects".to_owned(),
        Rejection::NotFailed { .. } => "409 not-failed".to_owned(),
        Rejection::UseDiscard => "409 use-discard".to_owned(),
        Rejection::UseCancel { .. } => "409 use-cancel".to_owned(),
        Rejection::AlreadyCompleted => "409 already-completed".to_owned(),
        Rejection::VersionChanged { .. } => "409 version-changed".to_owned(),
        Rejection::AlreadyStarted => "unchanged: already started".to_owned(),
        Rejection::NotClaimable => "–".to_owned(),
        Rejection::DoesNotApply { .. } => "does not apply".to_owned(),
    }
}

/// Appends a table with aligned columns.
fn table(page: &mut String, title: &str, rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..rows[0].len()).map(width).collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let _ = write!(page, "\n## {title}\n\n{}", line(&rows[0]));
    let rules: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
    page.push_str(&line(&rules));
    for row in &rows[1..] {
        page.push_str(&line(row));
    }
}

fn header(first: &str, rest: impl IntoIterator<Item = &'static str>) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(rest.into_iter().map(str::to_owned)).collect()
}

/// One table for each call of a worker: rows are states, columns are callers.
fn calls(page: &mut String) {
    for (call, event) in CALLS {
        let mut rows = vec![header("state", CALLERS.map(|(name, _)| name))];
        for (name, state) in STATES {
            let cells = CALLERS.iter().map(|(_, caller)| match caller(state) {
                Some((s, caller)) => cell(&s, &event(caller)),
                None => "·".to_owned(),
            });
            rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
        }
        table(page, call, &rows);
    }
}

type MakeCall = fn() -> EffectCall;

/// What is said about an effect.
const EFFECT_CALLS: [(&str, MakeCall); 3] = [
    ("effect begin", || EffectCall::Begin { own: None, fresh: "fresh".into() }),
    ("effect finish", || EffectCall::Finish { result: None }),
    ("effect abort", || EffectCall::Abort),
];

/// An effect that the newest lease has begun; of a completed job it is done, since nothing else can be.
fn with_effect(mut s: Scene) -> Scene {
    let is_done = s.job.status == Status::Completed;
    s.job.effects.push(Effect {
        name: "ship".into(),
        state: if is_done { EffectState::Done } else { EffectState::Open },
        key: "key".into(),
        seq: s.job.leases,
        begun_at: s.ctx.now,
        ended_at: is_done.then_some(s.ctx.now),
        assumed: false,
        result: None,
    });
    s
}

fn effect_cell(s: &Scene, event: &Event) -> String {
    match decide(&s.job, event, &s.ctx) {
        Err(rejection) => refusal(&rejection),
        Ok(Step { job, answer: Answer::Refused(rejection), .. }) => {
            format!("{} → {}", refusal(&rejection), standing(&job))
        }
        Ok(Step { job, answer, .. }) => {
            assert_eq!(job.version, s.job.version);
            let known = job.effect("ship").map(|effect| job.standing(effect).name());
            format!("{} {}", if answer == Answer::Done { "→" } else { "=" }, known.unwrap_or("none"))
        }
    }
}

/// Calls about an effect, and reports while it is open. What is open was begun by the newest lease.
fn effects(page: &mut String) {
    let reports: [(&str, MakeEvent); 3] = [
        ("complete, with an open effect", |caller| Event::Report(caller, report(completed()))),
        ("fail unknown, with an open effect", |caller| {
            Event::Report(caller, report(failed(ErrorClass::Unknown)))
        }),
        ("release, with an open effect", |caller| Event::Report(caller, report(released(0)))),
    ];
    let mut add = |title: &str, judge: &dyn Fn(Scene, Caller) -> String| {
        let mut rows = vec![header("state", CALLERS.map(|(name, _)| name))];
        for (name, state) in STATES {
            let cells = CALLERS.iter().map(|(_, caller)| match caller(state) {
                Some((s, caller)) => judge(with_effect(s), caller),
                None => "·".to_owned(),
            });
            rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
        }
        table(page, title, &rows);
    };
    for (title, call) in EFFECT_CALLS {
        add(title, &|s, caller| effect_cell(&s, &Event::Effect(caller, "ship".into(), call())));
    }
    for (title, event) in reports {
        add(title, &|s, caller| cell(&s, &event(caller)));
    }
}

/// One table for claims, newer versions and operators, with the version that they saw.
fn others(page: &mut String) {
    let columns = ["claim", "newer version"].into_iter().chain(ACTIONS.map(|(name, _)| name));
    let mut rows = vec![header("state", columns.clone())];
    let mut outdated = vec![header("state", columns.skip(2))];
    for (name, state) in STATES {
        let mut s = stage(NOTHING, state);
        s.wait_until_due().settle();
        let claim = cell(&s, &Event::Claim(s.grant("new")));
        let act = |seen_version| {
            let s = &s;
            ACTIONS.map(|(_, action)| cell(s, &Event::Operate { action: action(), seen_version }))
        };
        let newer = cell(&s, &Event::Supersede { by: JobId(8) });
        let first = [name.to_owned(), claim, newer];
        rows.push(first.into_iter().chain(act(Some(s.job.version))).collect());
        outdated.push(std::iter::once(name.to_owned()).chain(act(Some(s.job.version - 1))).collect());
    }
    table(
        page,
        "claim when due; a newer version of the object; operators who saw the present version, or name none",
        &rows,
    );
    table(page, "operators who saw an older version", &outdated);
}

type MakeScene = fn() -> Scene;

/// What time does, and that nothing else is judged before it.
fn time(page: &mut String) {
    let overdue_states: [(&str, MakeScene); 5] = [
        ("running, lease over", || running_until(LEASE_MS, None)),
        ("running, time limit over", || running_until(10, Some(10))),
        ("running, both over", || running_until(LEASE_MS, Some(LEASE_MS))),
        ("running, asked to stop, lease over", || {
            let mut s = plain();
            s.claim("w");
            s.operate(Action::Cancel { wait: true }).wait(LEASE_MS);
            s
        }),
        ("pending, age reached", || {
            let mut s = plain();
            s.job.expires_at = Some(s.ctx.now);
            s
        }),
    ];
    let mut rows = vec![header("state", ["attempt over", "age reached", "anything else"])];
    for (name, state) in overdue_states {
        let s = state();
        assert!(overdue(&s.job, s.ctx.now).is_some());
        let live = Caller::Live(bits(1));
        let mut rest: Vec<_> = CALLS.iter().map(|(_, event)| cell(&s, &event(live.clone()))).collect();
        let operate = |action| Event::Operate { action, seen_version: None };
        rest.extend(ACTIONS.iter().map(|(_, action)| cell(&s, &operate(action()))));
        rest.push(cell(&s, &Event::Claim(s.grant("new"))));
        rest.push(cell(&s, &Event::Supersede { by: JobId(8) }));
        rest.sort();
        rest.dedup();
        rows.push(vec![
            name.to_owned(),
            cell(&s, &Event::AttemptOver),
            cell(&s, &Event::Expire),
            rest.join(", "),
        ]);
    }
    for (name, state) in STATES {
        let s = stage(NOTHING, state);
        assert_eq!(overdue(&s.job, s.ctx.now), None);
        rows.push(vec![
            name.to_owned(),
            cell(&s, &Event::AttemptOver),
            cell(&s, &Event::Expire),
            "above".to_owned(),
        ]);
    }
    table(page, "time", &rows);
}

fn running_until(wait_ms: i64, timeout_ms: Option<i64>) -> Scene {
    let mut s = plain();
    match timeout_ms {
        Some(ms) => s.claim_limited("w", ms),
        None => s.claim("w"),
    };
    s.wait(wait_ms);
    s
}

#[test]
fn matrix() {
    let mut page = String::from(
        "# What happens to a job\n\n\
         `→` the job or its history moves, `=` it stays and the call is done, `409` nothing changes unless an arrow follows, \
         `·` no such caller.\n\
         `rN` retries used so far, `(late)` the report takes the place of the loss.\n\n\
         Callers: T live = token of the live lease; N newest = token of the newest lease, which has ended (late after a loss or \
         time-out, repeated after a report); X older, lost = token of an older lease that was lost; \
         R older, reported = token of an older lease that reported a transient failure; ? unknown = no such lease; \
         none = no token, with no worker_id, with that of the newest lease, with another, and with no worker_id after an \
         older lease was lost.\n",
    );
    calls(&mut page);
    effects(&mut page);
    others(&mut page);
    time(&mut page);
    insta::assert_snapshot!(page);
}
