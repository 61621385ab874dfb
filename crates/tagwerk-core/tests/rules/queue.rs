//! Controls of queues: room for starts, room for new jobs, and who has stopped it for what.

#![expect(clippy::unwrap_used, reason = "a test's helpers; clippy takes only `#[test]` functions for tests")]

use proptest::prelude::*;
use tagwerk_core::queue::{pause, resume};
use tagwerk_core::{Pause, PauseRefusal, Priority, QueueSettings, Reserve, Timestamp, limits};

/// All values here are priorities.
fn priority(value: u8) -> Priority {
    Priority::from_value(value).unwrap_or_default()
}

/// Sound settings: bounds small enough to be met.
fn settings() -> impl Strategy<Value = QueueSettings> {
    (proptest::option::of(1..8_u32), 0..8_u32, 0..=100_u8, proptest::option::of(1..10_u64)).prop_map(
        |(max_running, slots, from, max_depth)| {
            let reserve = Reserve { slots, from_priority: priority(from) };
            let settings = QueueSettings { max_running, reserve: Some(reserve), max_depth };
            if settings.is_sound() { settings } else { QueueSettings { reserve: None, ..settings } }
        },
    )
}

proptest! {
    /// Whatever is asked for, in whatever order, with ends in between: the bounds hold, and nothing is refused while
    /// there is room.
    #[test]
    fn starts_stay_within_both_bounds_and_use_all_room(
        settings in settings(),
        asks in proptest::collection::vec((0..=100_u8, 1..5_u32, any::<bool>()), 1..60),
    ) {
        let mut running: Vec<Priority> = Vec::new();
        let is_below = |p: &Priority| settings.reserve.is_some_and(|reserve| *p < reserve.from_priority);
        for (value, wanted, ends) in asks {
            if ends {
                running.pop();
            }
            let all = u32::try_from(running.len()).unwrap();
            let below = u32::try_from(running.iter().filter(|p| is_below(p)).count()).unwrap();
            let asked = priority(value);
            let room = settings.room(all, below, asked);
            let n = room.unwrap_or(wanted).min(wanted);
            running.extend(std::iter::repeat_n(asked, n as usize));
            let Some(max) = settings.max_running else {
                prop_assert_eq!(room, None);
                continue;
            };
            let now_below = running.iter().filter(|p| is_below(p)).count();
            prop_assert!(running.len() <= max as usize);
            let bound_below = settings.reserve.map_or(max, |reserve| max - reserve.slots) as usize;
            prop_assert!(now_below <= bound_below);
            if n < wanted {
                let is_full = running.len() == max as usize;
                prop_assert!(is_full || (is_below(&asked) && now_below == bound_below), "room was left");
            }
        }
    }

    /// Urgent jobs find the reserved slots free, however many others there are.
    #[test]
    fn the_reserve_is_free_for_urgent_jobs(
        (max, slots) in (2..20_u32).prop_flat_map(|max| (Just(max), 1..max)),
        flood in 1..50,
    ) {
        let reserve = Some(Reserve { slots, from_priority: priority(30) });
        let settings = QueueSettings { max_running: Some(max), reserve, max_depth: None };
        let mut running = 0;
        for _ in 0..flood {
            running += settings.room(running, running, priority(0)).unwrap().min(1);
        }
        prop_assert!(settings.room(running, running, priority(30)).unwrap() >= slots);
    }

    /// Taking one job after the other fills a queue exactly.
    #[test]
    fn a_queue_takes_exactly_its_depth(max in 1..50_u64, offered in 0..100_u64) {
        let settings = QueueSettings { max_depth: Some(max), ..QueueSettings::default() };
        let mut depth = 0;
        for _ in 0..offered {
            depth += u64::from(settings.accepts(depth));
        }
        prop_assert_eq!(depth, max.min(offered));
        prop_assert!(QueueSettings::default().accepts(u64::MAX));
    }
}

/// Bounds that were lowered while more ran already let nothing start, and do not wrap around.
#[test]
fn more_running_than_allowed_leaves_no_room() {
    let reserve = Some(Reserve { slots: 1, from_priority: priority(20) });
    let settings = QueueSettings { max_running: Some(2), reserve, max_depth: Some(1) };
    assert_eq!(settings.room(5, 5, priority(30)), Some(0));
    assert_eq!(settings.room(1, 1, priority(10)), Some(0));
    assert_eq!(settings.room(1, 1, priority(20)), Some(1));
    assert!(!settings.accepts(7));
}

/// Somebody pauses a queue for a reason, or lifts one, or the only one.
#[derive(Clone, Debug)]
enum Switch {
    Pause(u8),
    Resume(Option<u8>),
}

/// A few reasons that meet again and again, or more than may stand side by side.
fn switches() -> impl Strategy<Value = Vec<Switch>> {
    let most = u8::try_from(limits::PAUSE_REASONS_MAX).unwrap();
    prop_oneof![Just(3), Just(most + 3)].prop_flat_map(|reasons| {
        let switch = prop_oneof![
            6 => (0..reasons).prop_map(Switch::Pause),
            2 => (0..reasons).prop_map(|reason| Switch::Resume(Some(reason))),
            1 => Just(Switch::Resume(None)),
        ];
        proptest::collection::vec(switch, 1..100)
    })
}

proptest! {
    /// Each reason is a switch of its own: whoever has made one is the only one to undo it, in whatever order they come.
    #[test]
    fn a_queue_goes_on_when_the_last_of_its_reasons_is_lifted(switches in switches()) {
        let mut paused = Vec::new();
        // Since when each reason stands; the first word counts.
        let mut known = std::collections::BTreeMap::new();
        for (now, switch) in (0..).zip(switches) {
            let (answer, expected) = match switch {
                Switch::Pause(reason) => {
                    let is_too_many = known.len() == limits::PAUSE_REASONS_MAX && !known.contains_key(&reason);
                    if !is_too_many {
                        known.entry(reason).or_insert(now);
                    }
                    let by = Some(format!("person {now}"));
                    let new = Pause { reason: reason.to_string(), by, at: Timestamp::from_millis(now) };
                    (pause(&mut paused, new), if is_too_many { Err(PauseRefusal::TooMany) } else { Ok(()) })
                }
                Switch::Resume(reason) => {
                    let expected = match reason {
                        _ if known.is_empty() => Ok(()),
                        None if known.len() > 1 => Err(PauseRefusal::Several),
                        None => known.pop_first().map(drop).ok_or(PauseRefusal::Other),
                        Some(reason) => known.remove(&reason).map(drop).ok_or(PauseRefusal::Other),
                    };
                    (resume(&mut paused, reason.map(|reason| reason.to_string()).as_deref()), expected)
                }
            };
            prop_assert_eq!(answer, expected);
            let mut stands: Vec<_> = paused.iter().map(|p| (p.at, p.reason.clone(), p.by.clone())).collect();
            prop_assert!(stands.is_sorted(), "the oldest first");
            stands.sort();
            let mut all: Vec<_> = known
                .iter()
                .map(|(reason, at)| (Timestamp::from_millis(*at), reason.to_string(), Some(format!("person {at}"))))
                .collect();
            all.sort();
            prop_assert_eq!(stands, all);
        }
    }
}
