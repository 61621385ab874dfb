//! Runs the specification as if it were a server, at random, and writes down what clients see. Then lets calls overlap, loses
//! answers, and falsifies them.

use std::collections::BTreeMap;

use crate::rules::When;
use crate::spec::{Circumstance, Facts, Job, Life, Says, World};
use crate::{
    Action, Asked, Attempt, By, Call, Class, History, Key, Rules, Said, Scope, Status, Told, View, Whole,
};

/// Chance that a seed repeats.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("an index")].clone()
    }
}

/// How wild a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wildness {
    pub(crate) steps: u64,
    pub(crate) jobs: i64,
    /// Milliseconds that a call may last before and after its moment.
    pub(crate) spread_ms: u64,
    /// Share of answers that are lost, in percent.
    pub(crate) lost: u64,
}

/// See the module.
pub(crate) struct Machine {
    dice: Dice,
    wildness: Wildness,
    rules: Rules,
    facts: BTreeMap<i64, Facts>,
    keys: BTreeMap<i64, Option<Key>>,
    marks: BTreeMap<i64, String>,
    world: World,
    now_ns: u64,
    calls: Vec<Call>,
    /// Leases that a client heard of: job, token, worker.
    leases: Vec<(i64, String, String)>,
}

const MS: u64 = 1_000_000;

/// A run.
pub(crate) fn run(seed: u64, wildness: Wildness) -> History {
    let mut machine = Machine::new(seed, wildness);
    for step in 0..wildness.steps {
        machine.now_ns += (1 + machine.dice.below(200)) * MS;
        if machine.dice.percent(25) {
            machine.let_time_do();
        }
        machine.call(step);
    }
    History { rules: machine.rules, calls: machine.calls }
}

impl Machine {
    fn new(seed: u64, wildness: Wildness) -> Self {
        let mut dice = Dice::new(seed);
        let rules =
            Rules { completed_kept_ms: Some(2_000), cancelled_kept_ms: Some(3_000), ..Rules::default() };
        let ids = 1..=wildness.jobs;
        let facts = ids.clone().map(|id| (id, facts(&mut dice))).collect();
        let keys = ids.clone().map(|id| {
            let key = Key {
                name: "k".to_owned(),
                scope: dice.pick(&[Scope::Waiting, Scope::Unfinished, Scope::Ttl, Scope::Forever]),
                ttl_ms: 700,
            };
            (id, dice.percent(60).then_some(key))
        });
        let keys = keys.collect();
        let world = World::empty(ids);
        Self {
            dice,
            wildness,
            rules,
            facts,
            keys,
            marks: BTreeMap::new(),
            world,
            now_ns: 1_000 * MS,
            calls: Vec::new(),
            leases: Vec::new(),
        }
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.now_ns / MS).expect("a time")
    }

    /// One of the steps that no call asks for, if there is one.
    fn let_time_do(&mut self) {
        let steps = self.world.hidden(&self.facts, &self.rules, (self.now_ns, None));
        let possible: Vec<World> = steps
            .into_iter()
            .filter(|(_, _, step)| step.lo <= self.now_ns)
            .map(|(world, ..)| world)
            .collect();
        if !possible.is_empty() {
            self.world = self.dice.pick(&possible);
            self.fill_in();
        }
    }

    /// What the server's clock adds.
    fn fill_in(&mut self) {
        let now_ms = self.now_ms();
        for (id, life) in &mut self.world.jobs {
            let (Life::Here(job), Some(facts)) = (life, self.facts.get(id)) else { continue };
            if job.due_ms.is_none() {
                job.due_ms = Some(now_ms);
            }
            let Some(lease) = job.live_mut() else { continue };
            if lease.claimed_ms.is_none() || lease.extended {
                let claimed_ms = *lease.claimed_ms.get_or_insert(now_ms);
                let limit = facts.timeout_ms.map_or(i64::MAX, |ms| claimed_ms + ms);
                let until = (now_ms + lease.length_ms.expect("known")).min(limit);
                lease.told_until(until.max(lease.until_ms.unwrap_or(0)));
            }
        }
    }

    /// A job that somebody may know.
    fn some_job(&mut self) -> i64 {
        1 + i64::try_from(self.dice.below(self.wildness.jobs.unsigned_abs())).expect("small")
    }

    fn call(&mut self, step: u64) {
        let (asked, claims) = self.ask(step);
        let shown = |id| self.calls.iter().any(|call| call.told.view().is_some_and(|view| view.id == id));
        if asked.job().is_some_and(|id| *self.world.life(id) != Life::Unborn && !shown(id)) {
            // Nobody knows that it is there.
            return;
        }
        let birth = match &asked {
            Asked::Enqueue { key, .. } => {
                self.keys.iter().find(|(id, its)| *self.world.life(**id) == Life::Unborn && *its == key)
            }
            _ => None,
        };
        let births: Vec<i64> = birth.map(|(id, _)| *id).into_iter().collect();
        let token = format!("T{step}");
        let by = Circumstance {
            facts: &self.facts,
            rules: &self.rules,
            at: When { lo: self.now_ns, hi: self.now_ns },
            births: &births,
            claims,
            token: Some(&token),
        };
        let outcomes = self.world.outcomes(&asked, &by);
        if outcomes.is_empty() {
            return;
        }
        let outcome = self.dice.pick(&outcomes);
        let lost = self.dice.percent(self.wildness.lost);
        self.world = outcome.world;
        self.fill_in();
        if let (Asked::Enqueue { mark: Some(mark), .. }, Says::Job) = (&asked, &outcome.says) {
            self.marks.insert(outcome.job, mark.clone());
        }
        let mut told = Told::Nothing;
        if !lost {
            if let Some(Life::Here(job)) = self.world.jobs.get_mut(&outcome.job)
                && matches!(outcome.says, Says::Lease | Says::LeaseAgain)
                && let Some(lease) = job.live_mut()
            {
                lease.heard = true;
                let (token, worker) = (lease.token.clone(), lease.worker.clone());
                self.leases.push((outcome.job, token.expect("a token"), worker.expect("a worker")));
            }
            told = self.answer(outcome.job, &outcome.says);
        }
        let spread = self.wildness.spread_ms * MS;
        let start_ns = self.now_ns - self.dice.below(spread.min(self.now_ns) + 1);
        let end_ns = self.now_ns + 1 + self.dice.below(spread + 1);
        self.calls.push(Call { client: 0, start_ns, end_ns, asked, told });
    }

    fn ask(&mut self, step: u64) -> (Asked, Option<i64>) {
        let job = self.some_job();
        let asked = match self.dice.below(100) {
            0..20 => Asked::Enqueue { mark: Some(format!("m{step}")), key: self.keys[&job].clone() },
            20..45 => {
                let worker = self.dice.below(step + 1);
                let request = self.dice.percent(50).then(|| "r".to_owned());
                let lease_ms = Some(self.dice.pick(&[100, 300, 5_000]));
                return (Asked::Claim { worker: format!("w{worker}"), request, lease_ms }, Some(job));
            }
            45..70 => {
                let (job, by) = self.somebody();
                let said = self.dice.pick(&[
                    Said::Completed { result: Some(format!("{step}")) },
                    Said::Completed { result: None },
                    Said::Failed { class: Class::Transient },
                    Said::Failed { class: Class::Unknown },
                    Said::Failed { class: Class::Permanent },
                    Said::Released,
                ]);
                Asked::Report { job, by, said }
            }
            70..77 => {
                let (job, by) = self.somebody();
                Asked::Heartbeat { job, by }
            }
            77..80 => {
                let (job, by) = self.somebody();
                Asked::Checkpoint { job, by, value: format!("{step}") }
            }
            80..88 => {
                let action = self.dice.pick(&[
                    Action::Cancel { wait: true },
                    Action::Cancel { wait: false },
                    Action::Retry { max_retries: None },
                    Action::Retry { max_retries: Some(5) },
                    Action::Discard,
                    Action::ForceFail,
                    Action::Delete,
                ]);
                let version = self.world.job(job).map(|job| job.version);
                let seen_version = version.filter(|_| self.dice.percent(50));
                Asked::Operate { job, action, seen_version }
            }
            88..92 => Asked::Attempts { job },
            _ => Asked::Get { job },
        };
        (asked, None)
    }

    /// Somebody who had a job, with the token or without.
    fn somebody(&mut self) -> (i64, By) {
        let Some((job, token, worker)) = (!self.leases.is_empty()).then(|| self.dice.pick(&self.leases))
        else {
            return (self.some_job(), By { lease: Some("unknown".to_owned()), worker: None });
        };
        let by = match self.dice.below(10) {
            0 => By { lease: None, worker: Some(worker) },
            1 => By::default(),
            _ => By { lease: Some(token), worker: None },
        };
        (job, by)
    }

    fn answer(&self, id: i64, says: &Says) -> Told {
        let job = self.world.job(id);
        let view = || {
            let job = job.expect("it is shown");
            View { mark: self.marks.get(&id).cloned(), ..view_of(id, job, &self.facts[&id]) }
        };
        match says {
            Says::Job => Told::Job(view()),
            Says::Again => Told::Again(view()),
            Says::Lease | Says::LeaseAgain => Told::Lease {
                view: view(),
                lease: job.and_then(Job::live).and_then(|lease| lease.token.clone()).expect("a token"),
                again: *says == Says::LeaseAgain,
            },
            Says::Done => Told::Done { until_ms: job.and_then(Job::live).and_then(|lease| lease.until_ms) },
            Says::Tombstone => match self.world.life(id) {
                Life::Gone { status, .. } => Told::Tombstone { job: id, status: *status },
                _ => panic!("it is gone"),
            },
            Says::Held => refused(409, "duplicate", None),
            Says::Missing => refused(404, "job-not-found", None),
            Says::Attempts => Told::Attempts(attempts_of(job.expect("it is there"))),
            Says::Refused(code, may_report) => refused(409, code, *may_report),
        }
    }
}

pub(crate) fn refused(status: u16, code: &str, may_report: Option<bool>) -> Told {
    Told::Refused { status, code: code.to_owned(), may_report }
}

fn facts(dice: &mut Dice) -> Facts {
    let mut view = super::story::fresh();
    view.max_retries = dice.pick(&[0, 1, 3]);
    view.max_lease_losses = dice.pick(&[1, 2, 4]);
    view.review_unknown = dice.percent(15);
    view.timeout_ms = dice.percent(30).then_some(250);
    view.max_age_ms = dice.percent(20).then_some(1_500);
    Facts::of(&view)
}

/// The job as the server shows it.
fn view_of(id: i64, job: &Job, facts: &Facts) -> View {
    let lease = job.live();
    View {
        id,
        status: job.status,
        version: job.version,
        attempt: job.attempt,
        retry_count: job.retry_count,
        max_retries: job.max_retries,
        lease_losses: job.lease_losses,
        max_lease_losses: facts.max_lease_losses,
        release_count: job.release_count,
        verify: job.verify,
        cancel_requested: job.cancel_requested,
        review_unknown: facts.review_unknown,
        due_ms: job.due_ms.expect("filled in"),
        expires_ms: None,
        max_age_ms: match facts.age {
            crate::spec::Age::Ms(ms) => Some(ms),
            _ => None,
        },
        timeout_ms: facts.timeout_ms,
        worker: lease.and_then(|lease| lease.worker.clone()),
        claimed_ms: lease.and_then(|lease| lease.claimed_ms),
        until_ms: lease.and_then(|lease| lease.until_ms),
        reason: job.reason.map(str::to_owned),
        mark: None,
        key: job.key.as_ref().map(|key| key.name.clone()),
        ordering_key: None,
        on_head_failure: None,
        limits: Vec::new(),
        whole: Some(Whole { result: job.result.clone(), checkpoint: job.checkpoint.clone() }),
    }
}

fn attempts_of(job: &Job) -> Vec<Attempt> {
    let attempt = |lease: &crate::spec::Lease| Attempt {
        worker: lease.worker.clone().expect("a worker"),
        claimed_ms: lease.claimed_ms.expect("filled in"),
        outcome: lease.end.map(|end| end.name().to_owned()),
        class: lease.end.and_then(crate::spec::End::class),
    };
    job.leases.iter().map(attempt).collect()
}

/// How an answer is falsified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lie {
    /// A job is shown one version later or earlier.
    Version,
    /// A job is shown in another state.
    Status,
    /// A report that counted is said to have come too late.
    Denied,
    /// A report that was refused as too late is said to have counted.
    Believed,
    /// A job that is there is said not to be.
    Missing,
    /// A known key is said to have made another job.
    KeyTwice,
    /// A job is said to have been handed out to somebody else.
    Holder,
    /// The enqueue of a job is taken out.
    NobodysJob,
    /// A completion is said to have had another result.
    Result,
}

pub(crate) const LIES: [Lie; 9] = [
    Lie::Version,
    Lie::Status,
    Lie::Denied,
    Lie::Believed,
    Lie::Missing,
    Lie::KeyTwice,
    Lie::Holder,
    Lie::NobodysJob,
    Lie::Result,
];

/// Falsifies one answer; false if there is none that could be falsified so.
pub(crate) fn falsify(history: &mut History, lie: Lie, seed: u64) -> bool {
    let mut dice = Dice::new(seed ^ 0xA5A5);
    let before = history.calls.clone();
    let fitting: Vec<usize> = (0..before.len())
        .filter(|index| changed(&before, *index, lie, &mut dice.clone()).is_some())
        .collect();
    if fitting.is_empty() {
        return false;
    }
    let index = dice.pick(&fitting);
    if lie == Lie::NobodysJob {
        history.calls.remove(index);
    } else if let Some(call) = changed(&before, index, lie, &mut dice) {
        history.calls[index] = call;
    }
    true
}

fn changed(calls: &[Call], index: usize, lie: Lie, dice: &mut Dice) -> Option<Call> {
    let mut call = calls[index].clone();
    let is_report = matches!(call.asked, Asked::Report { .. });
    let was_too_late = matches!(&call.told, Told::Refused { code, .. } if code == "lease-lost");
    match (lie, &mut call.told) {
        (Lie::Version, Told::Job(view) | Told::Again(view) | Told::Lease { view, .. }) => {
            view.version += dice.pick(&[-1, 1]);
        }
        (Lie::Status, Told::Job(view) | Told::Again(view)) if view.status != Status::Running => {
            let all = [Status::Pending, Status::Completed, Status::Failed, Status::Cancelled];
            let others: Vec<Status> = all.into_iter().filter(|status| *status != view.status).collect();
            view.status = dice.pick(&others);
        }
        (Lie::Denied, told @ Told::Job(_)) if is_report => *told = refused(409, "lease-lost", Some(false)),
        (Lie::Believed, told @ Told::Refused { .. }) if is_report && was_too_late => {
            // With whatever is known of the job.
            let job = call.asked.job();
            let known = calls[..index].iter().rev().filter_map(|call| call.told.view());
            let view = known.into_iter().find(|view| Some(view.id) == job)?.clone();
            let view = View { version: view.version + 1, ..super::story::idle(view, 0, Status::Completed) };
            *told = Told::Job(View { version: view.version + 1, ..view });
        }
        (Lie::Missing, told @ Told::Job(_)) if matches!(call.asked, Asked::Get { .. }) => {
            *told = refused(404, "job-not-found", None);
        }
        (Lie::KeyTwice, told @ Told::Again(_)) if matches!(call.asked, Asked::Enqueue { .. }) => {
            let key = told.view()?.key.clone();
            *told = Told::Job(View { id: 1_000, key, ..super::story::fresh() });
        }
        (Lie::Holder, Told::Job(view)) if view.status == Status::Running => {
            view.worker = Some("somebody else".to_owned());
        }
        (Lie::NobodysJob, Told::Job(_)) if matches!(call.asked, Asked::Enqueue { .. }) => {
            let job = call.told.view()?.id;
            let shown = |other: &&Call| other.told.view().is_some_and(|view| view.id == job);
            (calls.iter().filter(shown).count() > 1).then_some(())?;
        }
        (Lie::Result, Told::Job(view) | Told::Again(view)) if view.status == Status::Completed => {
            view.whole = Some(Whole { result: Some("another".to_owned()), checkpoint: None });
        }
        _ => return None,
    }
    Some(call)
}
