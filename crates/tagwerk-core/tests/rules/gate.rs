//! What a limit lets through; and what several let through together, against a memory of every start.

#![expect(clippy::unwrap_used, reason = "a test's helpers; clippy takes only `#[test]` functions for tests")]

use proptest::prelude::*;
use proptest::sample::Index;
use tagwerk_core::gate::{LimitSettings, Rate, Room, Window, room};
use tagwerk_core::{Timestamp, limits};

const START_MS: i64 = 1_780_000_000_000;

const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + ms)
}

const fn two_a_second() -> Rate {
    Rate { count: 2, per_ms: limits::SECOND_MS, spread: false }
}

const SLOTS_AND_RATE: LimitSettings = LimitSettings { max_running: Some(3), rate: Some(two_a_second()) };

fn fresh(settings: &LimitSettings, running: u32) -> Room {
    room(settings, running, (&Window::default(), None), at(0))
}

#[test]
fn the_smaller_of_slots_and_starts_is_open() {
    assert_eq!(fresh(&SLOTS_AND_RATE, 0), Room::Open(2));
    assert_eq!(fresh(&SLOTS_AND_RATE, 1), Room::Open(2));
    assert_eq!(fresh(&SLOTS_AND_RATE, 2), Room::Open(1));
    assert_eq!(fresh(&SLOTS_AND_RATE, 3), Room::Full);
}

#[test]
fn more_running_than_a_lowered_limit_allows_is_full() {
    assert_eq!(fresh(&LimitSettings { max_running: Some(3), rate: None }, 9), Room::Full);
    assert_eq!(fresh(&LimitSettings { max_running: Some(0), rate: None }, 0), Room::Full);
}

#[test]
fn a_limit_that_bounds_nothing_is_open() {
    assert_eq!(fresh(&LimitSettings::default(), u32::MAX), Room::Open(u32::MAX));
}

#[test]
fn a_rate_that_is_spent_is_closed_until_it_comes_back() {
    let mut window = Window::default();
    window.take(&two_a_second(), 2, at(0));
    let Room::Until(opens) = room(&SLOTS_AND_RATE, 0, (&window, None), at(0)) else { panic!("it is spent") };
    // Sub-windows of 62.5 ms; that of the start is counted until sixteen others have passed.
    assert_eq!(opens, at(1_063));
    assert_eq!(room(&SLOTS_AND_RATE, 0, (&window, None), opens), Room::Open(2));
    // A full limit is not said to open by time alone.
    assert_eq!(room(&SLOTS_AND_RATE, 3, (&window, None), at(0)), Room::Full);
}

#[test]
fn a_hold_comes_first_and_ends_by_itself() {
    let held = |until, now| room(&SLOTS_AND_RATE, 3, (&Window::default(), Some(at(until))), at(now));
    assert_eq!(held(500, 0), Room::Until(at(500)));
    assert_eq!(held(500, 499), Room::Until(at(500)));
    assert_eq!(held(500, 500), Room::Full);
    let unbounded = LimitSettings::default();
    assert_eq!(room(&unbounded, 0, (&Window::default(), Some(at(1))), at(0)), Room::Until(at(1)));
}

/// Partitions of a limit; each counts for itself under the settings of its limit.
const PARTITIONS: usize = 2;

/// A partition of a limit: what the rules keep of it, and beside that all that ever happened under it.
struct Use {
    settings: LimitSettings,
    window: Window,
    hold_until: Option<i64>,
    starts: Vec<i64>,
}

const fn moment(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A job that runs until its lease ends, or until it reports.
#[derive(Clone)]
struct Running {
    uses: Vec<usize>,
    ends: i64,
}

/// The limits of a server, and the jobs that run under them.
struct Gates {
    now: i64,
    uses: Vec<Use>,
    running: Vec<Running>,
}

/// What may start at a moment by the memory of all starts, in the words of the module's own text.
fn starts_left(rate: &Rate, starts: &[i64], now: i64) -> u32 {
    let (per, count) = (rate.per_ms, i64::from(rate.count));
    let free = if rate.spread {
        // Places in parts of a millisecond, as many of them as the count says.
        let next = starts.iter().fold(i64::MIN, |next: i64, start| next.max(start * count) + per);
        let places = (next.max(now * count)..(now + 1) * count).step_by(usize::try_from(per).unwrap());
        i64::try_from(places.count()).unwrap().min(count)
    } else {
        let part = |ms: i64| (ms * 16).div_euclid(per);
        let counts = |start: &&i64| {
            if per <= 17 { **start > now - per } else { part(now) - part(**start) <= 16 }
        };
        count - i64::try_from(starts.iter().filter(counts).count()).unwrap()
    };
    u32::try_from(free).unwrap()
}

impl Gates {
    fn running_under(&self, of: usize) -> u32 {
        u32::try_from(self.running.iter().filter(|job| job.uses.contains(&of)).count()).unwrap()
    }

    /// Asks as a store asks: the window is brought to now and kept.
    fn room(&mut self, of: usize) -> Room {
        let (now, running) = (self.now, self.running_under(of));
        let Use { settings, window, hold_until, .. } = &mut self.uses[of];
        if let Some(rate) = &settings.rate {
            window.settle(rate, moment(now));
        }
        room(settings, running, (&*window, hold_until.map(moment)), moment(now))
    }

    /// The same by the memory, but for the moment at which a rate opens.
    fn expected(&self, of: usize) -> Room {
        let Use { settings, hold_until, starts, .. } = &self.uses[of];
        if let Some(until) = hold_until.filter(|until| *until > self.now) {
            return Room::Until(moment(until));
        }
        let slots = settings.max_running.map_or(u32::MAX, |max| max - self.running_under(of));
        let rated = settings.rate.as_ref().map_or(u32::MAX, |rate| starts_left(rate, starts, self.now));
        match (slots, rated) {
            (0, _) => Room::Full,
            (_, 0) => Room::Until(moment(self.opens(of))),
            _ => Room::Open(slots.min(rated)),
        }
    }

    /// The first moment at which the rate lets one through, if nothing starts meanwhile.
    fn opens(&self, of: usize) -> i64 {
        let Use { settings, starts, .. } = &self.uses[of];
        let rate = settings.rate.as_ref().unwrap();
        // While all of the last ones count, it is closed; those before them go first.
        let last = &starts[starts.len().saturating_sub(rate.count as usize)..];
        let starts = if rate.spread { starts } else { last };
        let longest = 2 * rate.per_ms;
        (self.now..self.now + longest).find(|ms| starts_left(rate, starts, *ms) > 0).unwrap()
    }

    fn wait(&mut self, ms: i64) {
        self.now += ms;
        let now = self.now;
        // A crash needs nobody to give the slot back: the lease ends.
        self.running.retain(|job| job.ends > now);
    }

    /// Starts a job under all of these, if all let it through.
    fn start(&mut self, uses: Vec<usize>, lease_ms: i64) {
        if !uses.iter().all(|of| matches!(self.room(*of), Room::Open(1..))) {
            return;
        }
        for of in &uses {
            let Use { settings, window, starts, .. } = &mut self.uses[*of];
            if let Some(rate) = &settings.rate {
                window.take(rate, 1, moment(self.now));
            }
            starts.push(self.now);
        }
        self.running.push(Running { uses, ends: self.now + lease_ms });
    }

    /// What no caller may ever see: too many at a time, or too many within any window of the period.
    fn check(&self) {
        for (of, Use { settings, starts, .. }) in self.uses.iter().enumerate() {
            assert!(settings.max_running.is_none_or(|max| self.running_under(of) <= max));
            let Some(rate) = &settings.rate else { continue };
            for (place, first) in starts.iter().enumerate() {
                let within = starts[place..].iter().filter(|start| **start - first < rate.per_ms).count();
                assert!(within <= rate.count as usize, "{within} from {first} on, {rate:?}");
            }
            let gap_ms = if rate.spread { rate.per_ms / i64::from(rate.count) } else { 0 };
            assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= gap_ms), "{rate:?}");
        }
    }
}

/// Something that happens on a server with limits.
#[derive(Clone, Debug)]
enum Deed {
    Wait(i64),
    Start { uses: [Index; 2], lease_ms: i64 },
    Report(Index),
    Throttle(Index, i64),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (0..120_i64).prop_map(Deed::Wait),
        8 => (any::<[Index; 2]>(), 1..2_000_i64).prop_map(|(uses, lease_ms)| Deed::Start { uses, lease_ms }),
        2 => any::<Index>().prop_map(Deed::Report),
        1 => (any::<Index>(), 1..300_i64).prop_map(|(of, ms)| Deed::Throttle(of, ms)),
    ]
}

/// Limits with few slots and few starts in short periods, so that they are met.
fn settings() -> impl Strategy<Value = LimitSettings> {
    let per_ms = prop_oneof![1 => 10..40_i64, 2 => 40..400_i64];
    let rate =
        (1..6_u32, per_ms, any::<bool>()).prop_map(|(count, per_ms, spread)| Rate { count, per_ms, spread });
    (prop::option::of(1..4_u32), prop::option::weighted(0.7, rate))
        .prop_map(|(max_running, rate)| LimitSettings { max_running, rate })
}

proptest! {
    /// Whatever starts, ends, dies or is held back, under one limit or two: each partition says what the memory of all
    /// starts says, and no bound is ever passed.
    #[test]
    fn limits_with_slots_rates_and_partitions_let_through_what_they_say_and_no_more(
        limits in prop::collection::vec(settings(), 1..3),
        deeds in prop::collection::vec(deed(), 1..80),
        phase in 0..1_000_i64,
    ) {
        let new_use = |settings: &LimitSettings| Use {
            settings: settings.clone(), window: Window::default(), hold_until: None, starts: Vec::new(),
        };
        let uses = limits.iter().flat_map(|settings| std::iter::repeat_n(settings, PARTITIONS)).map(new_use);
        let mut gates = Gates { now: START_MS + phase, uses: uses.collect(), running: Vec::new() };
        let all = gates.uses.len();
        for deed in deeds {
            match deed {
                Deed::Wait(ms) => gates.wait(ms),
                Deed::Start { uses, lease_ms } => {
                    let mut uses = uses.map(|of| of.index(all)).to_vec();
                    uses.dedup();
                    gates.start(uses, lease_ms);
                }
                Deed::Report(_) if gates.running.is_empty() => {}
                Deed::Report(which) => drop(gates.running.swap_remove(which.index(gates.running.len()))),
                Deed::Throttle(of, ms) => gates.uses[of.index(all)].hold_until = Some(gates.now + ms),
            }
            gates.check();
            for of in 0..all {
                prop_assert_eq!(gates.room(of), gates.expected(of));
            }
        }
    }
}
