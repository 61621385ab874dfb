//! Figures against thresholds.

use super::{Kind, Rules, Scope};
use crate::limits::{HOUR_MS, MINUTE_MS, SECOND_MS};

/// What was seen, of everything.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Figures {
    /// Queues that are not paused.
    pub queues: Vec<QueueFigures>,
    /// Types.
    pub types: Vec<TypeFigures>,
    /// The store.
    pub store: StoreFigures,
}

/// What was seen of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct QueueFigures {
    /// Its name.
    pub name: String,
    /// How long the oldest job that could be handed out has been waiting.
    pub oldest_ready_ms: Option<i64>,
    /// Its jobs that are ready or soon due, those of each type.
    pub unserved: Vec<Unserved>,
}

/// Jobs of a type in a queue that wait for somebody to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// The type.
    pub kind: String,
    /// How long they have been waiting while nobody asked for them. `None`: nobody has been seen to ask, but the server has
    /// not been looking for long.
    pub waited_ms: Option<i64>,
    /// A worker has asked for them at some time.
    pub known: bool,
}

/// What was seen of a type.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TypeFigures {
    /// Its name.
    pub name: String,
    /// How long attempts have been ending without one that was completed, while there is more to do. `None`: the last one
    /// was, or nothing is to be done.
    pub unsuccessful_ms: Option<i64>,
    /// Attempts that ended in the window.
    pub ended: Ended,
    /// Jobs that came into review in the window.
    pub reviews: i64,
    /// How long the oldest one has been in review.
    pub review_age_ms: Option<i64>,
    /// Run time that 95 of 100 attempts of the window stayed below, and of how many.
    pub p95: Option<(i64, i64)>,
}

/// Attempts that ended in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ended {
    /// Completed.
    pub completed: i64,
    /// Failed, ran out of time, or lost.
    pub failed: i64,
    /// Repeated, out of those that failed.
    pub retried: i64,
    /// Given back.
    pub released: i64,
    /// The server has been looking for a whole window.
    pub whole: bool,
}

/// What was seen of the store.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StoreFigures {
    /// Why it cannot be written, if it cannot.
    pub failing: Option<String>,
    /// Bytes of its write-ahead log.
    pub wal_bytes: i64,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// At the threshold or beyond.
    Rings,
    /// Below, but not well below.
    Near,
    /// Well below.
    Calm,
    /// Not to be told.
    Unsure,
}

/// How one thing stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What is looked at.
    pub kind: Kind,
    /// Where.
    pub scope: Scope,
    /// How it stands.
    pub state: State,
    /// The figure, in the kind's unit.
    pub value: i64,
    /// From where on it rings.
    pub threshold: i64,
    /// In words; empty unless it rings.
    pub detail: String,
}

/// Holds figures against thresholds. What is calm has no reading, and neither has what is switched off: there is most of it.
#[must_use]
pub fn measure(figures: &Figures, rules: &Rules) -> Vec<Reading> {
    let mut readings = Readings { rules, found: Vec::new() };
    for queue in &figures.queues {
        readings.queue(queue);
    }
    for of in &figures.types {
        readings.of_type(of);
    }
    readings.store(&figures.store);
    readings.found
}

struct Readings<'a> {
    rules: &'a Rules,
    found: Vec<Reading>,
}

impl Readings<'_> {
    /// Adds a reading; a figure that is `None` cannot be told.
    fn add(&mut self, kind: Kind, scope: &Scope, (value, words): (Option<i64>, impl FnOnce(i64) -> String)) {
        let Some(threshold) = self.rules.threshold(kind, scope) else { return };
        let state = value.map_or(State::Unsure, |value| state(value, threshold));
        let value = value.unwrap_or_default();
        if state == State::Calm {
            return;
        }
        let detail = if state == State::Rings { words(value) } else { String::new() };
        self.found.push(Reading { kind, scope: scope.clone(), state, value, threshold, detail });
    }

    fn queue(&mut self, queue: &QueueFigures) {
        let scope = Scope::Queue(queue.name.clone());
        let oldest = queue.oldest_ready_ms.unwrap_or_default();
        self.add(
            Kind::OldestReadyAge,
            &scope,
            (Some(oldest), |ms| {
                format!("a job of {scope} could be handed out and has waited for {}", long(ms))
            }),
        );
        let worst = queue.unserved.iter().max_by_key(|unserved| unserved.waited_ms);
        let unsure = queue.unserved.iter().any(|unserved| unserved.waited_ms.is_none());
        let threshold = self.rules.threshold(Kind::NoWorker, &scope).unwrap_or(i64::MAX);
        let waited = worst.and_then(|worst| worst.waited_ms);
        // What is not known of one type does not hide what is known of another.
        let value = match waited {
            Some(ms) if ms >= threshold => Some(ms),
            _ if unsure => None,
            waited => Some(waited.unwrap_or_default()),
        };
        self.add(
            Kind::NoWorker,
            &scope,
            (value, |ms| {
                let kind = worst.map_or("", |worst| &worst.kind);
                if worst.is_some_and(|worst| worst.known) {
                    format!("no worker has asked {scope} for jobs of type {kind} for {}", long(ms))
                } else {
                    format!(
                        "jobs of type {kind} wait in {scope}, and no worker has ever asked for them ({})",
                        long(ms)
                    )
                }
            }),
        );
    }

    fn of_type(&mut self, of: &TypeFigures) {
        let scope = Scope::Type(of.name.clone());
        let Ended { completed, failed, retried, released, whole } = of.ended;
        let all = completed + failed;
        let min = self.rules.attempts_min;
        let window = long(self.rules.window_ms);
        // Too few attempts are no rate, and once a whole window has been seen they are a calm one.
        let rate = |part: i64| match all {
            all if all >= min.max(1) => Some(part.saturating_mul(1_000) / all),
            _ if whole => Some(0),
            _ => None,
        };
        let rules = self.rules;
        // What has been counted for less than a window may be all that there was, or not: it is enough to ring, not to be calm.
        let counted = |kind: Kind, n: i64| {
            let is_enough = rules.threshold(kind, &scope).is_some_and(|threshold| n >= threshold);
            (whole || is_enough).then_some(n)
        };
        self.add(
            Kind::NoSuccess,
            &scope,
            (Some(of.unsuccessful_ms.unwrap_or_default()), |ms| {
                format!("attempts of {scope} end, but none has been completed for {}", long(ms))
            }),
        );
        self.add(
            Kind::FailureRate,
            &scope,
            (rate(failed), |_| format!("{failed} of {all} attempts of {scope} failed within {window}")),
        );
        self.add(
            Kind::RetryRate,
            &scope,
            (rate(retried), |_| {
                format!("{retried} of {all} attempts of {scope} were repeated within {window}")
            }),
        );
        self.add(
            Kind::ReviewNew,
            &scope,
            (counted(Kind::ReviewNew, of.reviews), |n| {
                format!("{} of {scope} came into review within {window}", jobs(n))
            }),
        );
        self.add(
            Kind::ReviewAge,
            &scope,
            (Some(of.review_age_ms.unwrap_or_default()), |ms| {
                format!("a job of {scope} has been in review for {}", long(ms))
            }),
        );
        let p95 = match of.p95 {
            Some((ms, n)) if n >= min => Some(ms),
            _ if whole => Some(0),
            _ => None,
        };
        self.add(
            Kind::RunTimeP95,
            &scope,
            (p95, |ms| format!("of 100 attempts of {scope} within {window}, 5 took {} or longer", long(ms))),
        );
        // Giving back is a loop only where it leads to nothing.
        let loops = if released > completed { released } else { 0 };
        self.add(
            Kind::ReleaseLoop,
            &scope,
            (counted(Kind::ReleaseLoop, loops), |n| {
                format!("workers gave back {} of {scope} within {window} and completed {completed}", jobs(n))
            }),
        );
    }

    fn store(&mut self, store: &StoreFigures) {
        let Some(threshold) = self.rules.threshold(Kind::Store, &Scope::Server) else { return };
        let (state, detail) = match &store.failing {
            Some(why) => (State::Rings, format!("nothing can be written: {why}")),
            None => (
                state(store.wal_bytes, threshold),
                format!(
                    "the write-ahead log of the store has {} MB; somebody reads for very long, or the disk is too slow",
                    store.wal_bytes / 1_000_000
                ),
            ),
        };
        if state == State::Calm {
            return;
        }
        let detail = if state == State::Rings { detail } else { String::new() };
        let (kind, scope, value) = (Kind::Store, Scope::Server, store.wal_bytes);
        self.found.push(Reading { kind, scope, state, value, threshold, detail });
    }
}

/// Well below is four fifths: a figure that has just dropped under its threshold comes back soon.
fn state(value: i64, threshold: i64) -> State {
    if value >= threshold {
        State::Rings
    } else if i128::from(value) * 5 >= i128::from(threshold) * 4 {
        State::Near
    } else {
        State::Calm
    }
}

fn jobs(n: i64) -> String {
    if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") }
}

/// A length of time in words, in the two units that matter.
fn long(ms: i64) -> String {
    let (hours, minutes, seconds) = (ms / HOUR_MS, ms % HOUR_MS / MINUTE_MS, ms % MINUTE_MS / SECOND_MS);
    match (hours, minutes) {
        (0, 0) if ms < SECOND_MS => format!("{ms} ms"),
        (0, 0) => format!("{seconds} s"),
        (0, _) if seconds == 0 => format!("{minutes} min"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ if minutes == 0 => format!("{hours} h"),
        _ => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::{Rule, Thresholds};

    fn read(figures: &Figures, rules: &Rules, kind: Kind) -> Option<(State, i64, String)> {
        let mut found = measure(figures, rules).into_iter().filter(|reading| reading.kind == kind);
        let reading = found.next();
        assert_eq!(found.next(), None);
        reading.map(|reading| (reading.state, reading.value, reading.detail))
    }

    fn state_of(figures: &Figures, kind: Kind) -> State {
        read(figures, &Rules::default(), kind).map_or(State::Calm, |(state, ..)| state)
    }

    fn queue(queue: QueueFigures) -> Figures {
        Figures { queues: vec![QueueFigures { name: "q".to_owned(), ..queue }], ..Figures::default() }
    }

    fn ended(ended: Ended) -> Figures {
        let figures = TypeFigures { name: "t".to_owned(), ended, ..TypeFigures::default() };
        Figures { types: vec![figures], ..Figures::default() }
    }

    fn waits(kind: &str, waited_ms: Option<i64>) -> Unserved {
        Unserved { kind: kind.to_owned(), waited_ms, known: false }
    }

    #[test]
    fn well_below_is_four_fifths() {
        assert_eq!(
            [79, 80, 99, 100].map(|n| state(n, 100)),
            [State::Calm, State::Near, State::Near, State::Rings]
        );
        assert_eq!([0, 1].map(|n| state(n, 1)), [State::Calm, State::Rings]);
        assert_eq!(state(i64::MAX - 1, i64::MAX), State::Near);
    }

    #[test]
    fn the_longest_unserved_type_of_a_queue_counts() {
        let unserved = vec![waits("a", Some(5_000)), waits("b", Some(300_000))];
        let figures = queue(QueueFigures { unserved, ..QueueFigures::default() });
        let (state, value, detail) = read(&figures, &Rules::default(), Kind::NoWorker).unwrap();
        assert_eq!((state, value), (State::Rings, 300_000));
        assert_eq!(detail, "jobs of type b wait in queue q, and no worker has ever asked for them (5 min)");
    }

    /// A server that has just been started knows of nobody who asks, and says neither yes nor no.
    #[test]
    fn what_cannot_be_told_of_one_type_does_not_hide_another() {
        let figures = |unserved| queue(QueueFigures { unserved, ..QueueFigures::default() });
        let unsure = figures(vec![waits("a", None), waits("b", Some(1_000))]);
        assert_eq!(state_of(&unsure, Kind::NoWorker), State::Unsure);
        let rings = figures(vec![waits("a", None), waits("b", Some(300_000))]);
        assert_eq!(state_of(&rings, Kind::NoWorker), State::Rings);
        assert_eq!(state_of(&figures(vec![]), Kind::NoWorker), State::Calm);
    }

    #[test]
    fn a_few_attempts_are_no_rate() {
        let ended = |failed, completed, whole| {
            ended(Ended { completed, failed, retried: failed, released: 0, whole })
        };
        assert_eq!(state_of(&ended(19, 0, false), Kind::FailureRate), State::Unsure);
        assert_eq!(state_of(&ended(19, 0, true), Kind::FailureRate), State::Calm);
        let figures = ended(10, 10, false);
        let (state, value, detail) = read(&figures, &Rules::default(), Kind::FailureRate).unwrap();
        assert_eq!(
            (state, value, &*detail),
            (State::Rings, 500, "10 of 20 attempts of type t failed within 10 min")
        );
        assert_eq!(state_of(&ended(9, 11, false), Kind::FailureRate), State::Near);
        assert_eq!(state_of(&ended(18, 2, false), Kind::RetryRate), State::Rings);
        assert_eq!(state_of(&ended(17, 3, false), Kind::RetryRate), State::Near);
    }

    /// After a restart an alert about what came before it is not calm because nothing has come since.
    #[test]
    fn what_was_counted_for_less_than_a_window_rings_and_is_not_calm() {
        let came = |reviews, whole| {
            let ended = Ended { whole, ..Ended::default() };
            let of = TypeFigures { name: "t".to_owned(), reviews, ended, ..TypeFigures::default() };
            state_of(&Figures { types: vec![of], ..Figures::default() }, Kind::ReviewNew)
        };
        assert_eq!((came(0, false), came(1, false)), (State::Unsure, State::Rings));
        assert_eq!((came(0, true), came(1, true)), (State::Calm, State::Rings));
    }

    #[test]
    fn giving_back_is_a_loop_only_where_nothing_comes_of_it() {
        let ended =
            |released, completed| ended(Ended { completed, released, whole: true, ..Ended::default() });
        assert_eq!(state_of(&ended(100, 99), Kind::ReleaseLoop), State::Rings);
        assert_eq!(state_of(&ended(100, 100), Kind::ReleaseLoop), State::Calm);
    }

    #[test]
    fn a_store_that_cannot_be_written_rings_whatever_its_log() {
        let failing = StoreFigures { failing: Some("the disk is full".to_owned()), wal_bytes: 0 };
        let figures = Figures { store: failing, ..Figures::default() };
        let (state, _, detail) = read(&figures, &Rules::default(), Kind::Store).unwrap();
        assert_eq!((state, &*detail), (State::Rings, "nothing can be written: the disk is full"));
        let long = StoreFigures { failing: None, wal_bytes: 512 * 1024 * 1024 };
        assert_eq!(state_of(&Figures { store: long, ..Figures::default() }, Kind::Store), State::Rings);
        assert_eq!(state_of(&Figures::default(), Kind::Store), State::Calm);
    }

    #[test]
    fn a_rule_for_one_thing_goes_before_the_general_one_and_off_is_no_reading() {
        let figures = queue(QueueFigures { oldest_ready_ms: Some(60_000), ..QueueFigures::default() });
        let mut rules = Rules::default();
        assert_eq!(read(&figures, &rules, Kind::OldestReadyAge), None);
        let mut rule = Rule::default();
        rule.thresholds.insert(Kind::OldestReadyAge, Some(60_000));
        rules.single.insert(Scope::Queue("q".to_owned()), rule);
        let (state, _, detail) = read(&figures, &rules, Kind::OldestReadyAge).unwrap();
        assert_eq!(
            (state, &*detail),
            (State::Rings, "a job of queue q could be handed out and has waited for 1 min")
        );
        rules.single.clear();
        rules.general.set(Kind::OldestReadyAge, None);
        assert_eq!(read(&figures, &rules, Kind::OldestReadyAge), None);
        assert_eq!(Thresholds::default().get(Kind::OldestReadyAge), Some(15 * MINUTE_MS));
    }

    #[test]
    fn lengths_of_time_are_told_in_two_units() {
        let told = [0, 999, 59_000, 60_000, 61_500, 3_600_000, 5_400_000, 90_000_000].map(long);
        assert_eq!(told, ["0 ms", "999 ms", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 30 min", "25 h"]);
    }
}
