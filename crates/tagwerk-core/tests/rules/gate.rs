//! What a limit lets through.

use tagwerk_core::gate::{LimitSettings, Rate, Room, Window, room};
use tagwerk_core::{Timestamp, limits};

const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_780_000_000_000 + ms)
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
