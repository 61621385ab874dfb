//! What becomes of each call. Every scenario is a rule here; all of them end: a call of a job is struck a bounded number of
//! times, so that a worker that does the right thing comes to its end.

use std::collections::HashMap;
use std::time::Duration;

use clap::ValueEnum;

use super::call::Call;
use super::dice::dice;

/// How often the same call of the same job is struck at most.
const STRIKES: u32 = 2;

/// What `Retry-After` of a refusal says, in seconds.
pub(super) const RETRY_AFTER: u32 = 1;

/// What is done to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Scenario {
    /// Nothing is done to it; always runs first
    Calm,
    /// The server has done the call, the connection is cut before the answer has come
    AnswerLost,
    /// The lease ends in the middle of the work
    LeaseLost,
    /// Two workers; the lease of one ends while it works, so the other gets the job too
    Twice,
    /// Answers come late
    Delayed,
    /// Calls are answered 429 and 503 with Retry-After
    Refused,
    /// The worker is killed after its first call, its second, …, and started again
    Killed,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    /// The answer is lost.
    Cut(Cut),
    /// The answer is late.
    Delay(Duration),
    /// The request waits until the lease has ended, or longer.
    Hold(Until),
    /// The server never sees it.
    Refuse(u16),
    /// The worker is killed.
    Kill(Moment),
}

/// How an answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Closed,
    Reset,
    /// Half of it arrives.
    Half,
}

/// How long a request is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The attempt is over.
    Over,
    /// Another worker has the job.
    Claimed,
    /// Another worker has reported.
    Reported,
}

/// When a worker is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// It has sent the call, and the server does not get it: what the worker did before is done.
    Before,
    /// The server has done the call, and the worker does not hear of it.
    Done,
    /// It has got the answer.
    Answered,
}

impl Moment {
    pub(super) const ALL: [Self; 3] = [Self::Before, Self::Done, Self::Answered];

    const fn told(self) -> &'static str {
        match self {
            Self::Before => "killed as it made this call, which did not reach the server",
            Self::Done => "killed when the server had done this call, before the answer came",
            Self::Answered => "killed when the answer to this call had come",
        }
    }
}

impl Scenario {
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// One sentence.
    pub(super) fn about(self) -> String {
        let help = self.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
        help.unwrap_or_default()
    }

    /// Copies of the worker that run at the same time.
    pub(super) const fn workers(self) -> usize {
        if matches!(self, Self::Twice) { 2 } else { 1 }
    }
}

impl Fate {
    /// In words, for who looks for the cause; `None` if nothing was done.
    pub(super) fn told(self) -> Option<String> {
        Some(match self {
            Self::Pass => return None,
            Self::Cut(Cut::Closed) => "answer lost, connection closed".to_owned(),
            Self::Cut(Cut::Reset) => "answer lost, connection reset".to_owned(),
            Self::Cut(Cut::Half) => "answer lost, half of it arrived".to_owned(),
            Self::Delay(length) => format!("answer delayed by {} ms", length.as_millis()),
            Self::Hold(Until::Over) => "held back until the lease had ended".to_owned(),
            Self::Hold(Until::Claimed) => "held back until the other worker had the job too".to_owned(),
            Self::Hold(Until::Reported) => "held back until the other worker had reported".to_owned(),
            Self::Refuse(status) => format!("answered {status} with Retry-After: {RETRY_AFTER}"),
            Self::Kill(moment) => moment.told().to_owned(),
        })
    }
}

/// What is to be done in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders {
    pub(super) scenario: Scenario,
    pub(super) seed: u64,
    pub(super) round: u32,
    pub(super) lease: Duration,
    /// Of the scenario `killed`.
    pub(super) kill: Option<(u32, Moment)>,
}

/// What was done to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strike {
    /// Number of the job in its round.
    pub(super) job: Option<i64>,
    pub(super) told: String,
}

/// The rules of a round, and what has happened in it.
#[derive(Debug)]
pub(super) struct Plan {
    orders: Orders,
    /// Id of the round's first job.
    first: i64,
    jobs: i64,
    /// How often each call was looked at: name and job.
    seen: HashMap<(String, i64), u32>,
    /// Calls of the worker, without claims that brought nothing.
    pub(super) calls: u32,
    killed: bool,
    /// The attempt of each job that was handed out last, and to which worker.
    handed: HashMap<(usize, i64), u32>,
    newest: HashMap<i64, u32>,
    /// Attempts that a report was answered for.
    reported: HashMap<i64, u32>,
    /// The job that is being delivered twice.
    held: Option<i64>,
    pub(super) strikes: Vec<Strike>,
    /// What people should know besides.
    pub(super) remarks: Vec<String>,
}

impl Plan {
    pub(super) fn new(orders: Orders, first: i64, jobs: usize) -> Self {
        Self {
            orders,
            first,
            jobs: i64::try_from(jobs).unwrap_or(i64::MAX),
            seen: HashMap::new(),
            calls: 0,
            killed: false,
            handed: HashMap::new(),
            newest: HashMap::new(),
            reported: HashMap::new(),
            held: None,
            strikes: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// The number of a job in its round, if it is one of it.
    fn number(&self, id: i64) -> Option<i64> {
        let number = id.checked_sub(self.first)?;
        (0..self.jobs).contains(&number).then_some(number)
    }

    /// What becomes of a call that a worker makes, before the server sees it.
    pub(super) fn before(&mut self, worker: usize, call: &Call) -> Fate {
        let number = call.jobs.iter().find_map(|id| self.number(*id));
        let fate = match self.orders.scenario {
            Scenario::Refused => self.refuse(call, number),
            Scenario::LeaseLost => self.hold(worker, call, |plan, number| {
                let all = plan.orders.round == 0;
                (all || plan.chance("hold", number, 0).is_multiple_of(2)).then_some(Until::Over)
            }),
            Scenario::Twice if self.held.is_none() || self.held == number => {
                let fate = self.hold(worker, call, |plan, number| {
                    let first = (plan.orders.round
                        + u32::from(plan.chance("twice", number, 0).is_multiple_of(2)))
                    .is_multiple_of(2);
                    Some(if first { Until::Claimed } else { Until::Reported })
                });
                if matches!(fate, Fate::Hold(_)) {
                    self.held = number;
                }
                fate
            }
            Scenario::Killed
                if !self.killed && self.orders.kill == Some((self.calls + 1, Moment::Before)) =>
            {
                self.killed = true;
                Fate::Kill(Moment::Before)
            }
            _ => Fate::Pass,
        };
        self.note(call, number, fate)
    }

    /// What becomes of the answer.
    pub(super) fn after(&mut self, worker: usize, call: &Call, answer: (u16, &[u8])) -> Fate {
        let (status, body) = answer;
        let handed = if status == 200 { call.handed(body) } else { Vec::new() };
        for (id, attempt) in &handed {
            self.handed.insert((worker, *id), *attempt);
            self.newest.insert(*id, *attempt);
        }
        if call.reports {
            for id in &call.jobs {
                let attempt = self.handed.get(&(worker, *id)).copied().unwrap_or_default();
                let latest = self.reported.entry(*id).or_default();
                *latest = attempt.max(*latest);
            }
        }
        let about = call.jobs.iter().copied().chain(handed.iter().map(|(id, _)| *id));
        let Some(number) = { about }.find_map(|id| self.number(id)) else { return Fate::Pass };
        self.calls += 1;
        let fate = match self.orders.scenario {
            Scenario::AnswerLost => self.cut(call, number),
            Scenario::Delayed => self.delay(call, number),
            Scenario::Killed if !self.killed => match self.orders.kill {
                Some((k, moment)) if k == self.calls && moment != Moment::Before => {
                    self.killed = true;
                    Fate::Kill(moment)
                }
                _ => Fate::Pass,
            },
            _ => Fate::Pass,
        };
        self.note(call, Some(number), fate)
    }

    /// Whether a call that is held back may go on, as far as is known from what came past here.
    pub(super) fn may_go(&self, job: i64, until: Until) -> bool {
        let is_second = |seen: &HashMap<i64, u32>| seen.get(&job).is_some_and(|attempt| *attempt > 1);
        match until {
            // The server has to be asked.
            Until::Over => false,
            Until::Claimed => is_second(&self.newest),
            Until::Reported => is_second(&self.reported),
        }
    }

    /// A call was held back long enough.
    pub(super) fn let_go(&mut self, job: i64) {
        if self.held == self.number(job) {
            self.held = None;
        }
    }

    fn chance(&self, what: &str, number: i64, time: u32) -> u64 {
        let Orders { scenario, seed, round, .. } = self.orders;
        dice(seed, &format!("{} {round} {what} {number} {time}", scenario.name()))
    }

    /// How often this call of this job was looked at before.
    fn time(&mut self, call: &Call, number: i64) -> u32 {
        let seen = self.seen.entry((call.name.clone(), number)).or_default();
        *seen += 1;
        *seen - 1
    }

    /// Round 0 strikes every call but claims, round 1 every claim, the others half of all.
    fn strikes(&self, call: &Call, (number, time): (i64, u32)) -> bool {
        let is_claim = call.jobs.is_empty();
        match self.orders.round {
            0 => !is_claim && time == 0,
            1 => is_claim && time == 0,
            _ => time < STRIKES && self.chance(&call.name, number, time).is_multiple_of(2),
        }
    }

    fn refuse(&mut self, call: &Call, number: Option<i64>) -> Fate {
        // Claims have no job yet; they are told apart by their number only.
        let number = match number {
            Some(number) => number,
            None if call.claims => -1,
            None => return Fate::Pass,
        };
        let time = self.time(call, number);
        if !self.strikes(call, (number, time)) {
            return Fate::Pass;
        }
        Fate::Refuse(if self.chance("status", number, time).is_multiple_of(2) { 503 } else { 429 })
    }

    /// Holds back what is about the first attempt of a job, unless its lease has ended.
    fn hold(&self, worker: usize, call: &Call, choose: impl Fn(&Self, i64) -> Option<Until>) -> Fate {
        for id in &call.jobs {
            let (own, newest) = (self.handed.get(&(worker, *id)), self.newest.get(id));
            let Some(number) = self.number(*id) else { continue };
            if own == Some(&1) && newest == Some(&1) {
                return choose(self, number).map_or(Fate::Pass, Fate::Hold);
            }
        }
        Fate::Pass
    }

    fn cut(&mut self, call: &Call, number: i64) -> Fate {
        let time = self.time(call, number);
        if !self.strikes(call, (number, time)) {
            return Fate::Pass;
        }
        Fate::Cut(match self.chance("cut", number, time) % 3 {
            0 => Cut::Closed,
            1 => Cut::Reset,
            _ => Cut::Half,
        })
    }

    fn delay(&mut self, call: &Call, number: i64) -> Fate {
        let time = self.time(call, number);
        if time >= STRIKES {
            return Fate::Pass;
        }
        // Half of a lease at most: late, and still in time.
        let most = u64::try_from(self.orders.lease.as_millis() / 2).unwrap_or(u64::MAX).max(1);
        Fate::Delay(Duration::from_millis(self.chance(&call.name, number, time) % most))
    }

    fn note(&mut self, call: &Call, number: Option<i64>, fate: Fate) -> Fate {
        if let Some(told) = fate.told() {
            self.strikes.push(Strike { job: number, told: format!("{}: {told}", call.name) });
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(scenario: Scenario, round: u32, kill: Option<(u32, Moment)>) -> Plan {
        let orders = Orders { scenario, seed: 7, round, lease: Duration::from_secs(2), kill };
        Plan::new(orders, 10, 3)
    }

    fn complete(id: i64) -> Call {
        Call::of("POST", &format!("/jobs/{id}/complete"), b"{}")
    }

    fn claim() -> Call {
        Call::of("POST", "/jobs/claim", b"{}")
    }

    /// A claim that hands out this job.
    fn claimed(plan: &mut Plan, worker: usize, (id, attempt): (i64, u32)) -> Fate {
        assert_eq!(plan.before(worker, &claim()), Fate::Pass);
        plan.after(worker, &claim(), (200, format!(r#"{{"id":{id},"attempt":{attempt}}}"#).as_bytes()))
    }

    #[test]
    fn a_worker_is_killed_once_at_the_call_that_was_asked_for() {
        for (k, moment) in [1, 2].into_iter().flat_map(|k| Moment::ALL.map(|moment| (k, moment))) {
            let mut plan = plan(Scenario::Killed, 0, Some((k, moment)));
            let mut fates = Vec::new();
            for call in [claim(), complete(10)] {
                fates.push(plan.before(0, &call));
                fates.push(plan.after(0, &call, (200, br#"{"id":10,"attempt":1}"#)));
            }
            let at = (k - 1) * 2 + u32::from(moment != Moment::Before);
            for (number, fate) in (0..).zip(&fates) {
                let due = if number == at { Fate::Kill(moment) } else { Fate::Pass };
                assert_eq!(*fate, due, "{k} {moment:?} {fates:?}");
            }
        }
    }

    #[test]
    fn claims_that_bring_nothing_do_not_count_and_are_not_struck() {
        let mut plan = plan(Scenario::AnswerLost, 1, None);
        assert_eq!(plan.after(0, &claim(), (200, b"null")), Fate::Pass);
        assert_eq!(plan.calls, 0);
        assert!(matches!(claimed(&mut plan, 0, (10, 1)), Fate::Cut(_)));
        assert_eq!(claimed(&mut plan, 0, (10, 2)), Fate::Pass);
        assert_eq!(plan.calls, 2);
    }

    #[test]
    fn what_is_struck_ends() {
        for scenario in [Scenario::AnswerLost, Scenario::Delayed, Scenario::Refused] {
            for round in 0..20 {
                let mut plan = plan(scenario, round, None);
                let mut struck = 0;
                for _ in 0..100 {
                    for call in [claim(), complete(11)] {
                        struck += u32::from(plan.before(0, &call) != Fate::Pass);
                        struck +=
                            u32::from(plan.after(0, &call, (200, br#"{"id":11,"attempt":1}"#)) != Fate::Pass);
                    }
                }
                assert!(struck <= 2 * STRIKES, "{scenario:?} {round} {struck}");
            }
        }
    }

    #[test]
    fn the_first_attempt_is_held_back_until_another_worker_has_the_job() {
        let mut plan = plan(Scenario::Twice, 0, None);
        for (worker, job) in [(0, 10), (1, 11)] {
            claimed(&mut plan, worker, (job, 1));
        }
        let Fate::Hold(until) = plan.before(0, &complete(10)) else { panic!("not held") };
        // One at a time, or two workers with a job each would wait for each other.
        assert_eq!(plan.before(1, &complete(11)), Fate::Pass);
        assert!(!plan.may_go(10, until));
        claimed(&mut plan, 1, (10, 2));
        assert_eq!(plan.may_go(10, until), until == Until::Claimed);
        assert_eq!(plan.before(1, &complete(10)), Fate::Pass);
        plan.after(1, &complete(10), (200, b"{}"));
        assert!(plan.may_go(10, until));
        plan.let_go(10);
        claimed(&mut plan, 0, (12, 1));
        assert!(matches!(plan.before(0, &complete(12)), Fate::Hold(_)));
    }

    #[test]
    fn both_orders_of_a_double_delivery_come() {
        let first = |round| {
            let mut plan = plan(Scenario::Twice, round, None);
            claimed(&mut plan, 0, (10, 1));
            plan.before(0, &complete(10))
        };
        assert_ne!(first(0), first(1));
    }

    #[test]
    fn the_same_seed_strikes_the_same_calls() {
        let all = |seed| {
            let orders = Orders { seed, ..plan(Scenario::AnswerLost, 2, None).orders };
            let mut plan = Plan::new(orders, 10, 3);
            (10..13).map(|id| plan.after(0, &complete(id), (200, b"{}"))).collect::<Vec<_>>()
        };
        assert_eq!(all(1), all(1));
        assert!((2..20).any(|seed| all(seed) != all(1)));
    }
}
