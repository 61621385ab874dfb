//! A rate against a brute force over all windows.

use proptest::prelude::*;

use super::*;

const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_780_000_000_000 + ms)
}

const fn rate(count: u32, per_ms: i64) -> Rate {
    Rate { count, per_ms, spread: false }
}

/// Takes whatever is let through at these moments; returns all starts.
fn starts(rate: &Rate, moments: &[(i64, u32)]) -> Vec<i64> {
    let mut window = Window::default();
    let mut starts = Vec::new();
    for (ms, wanted) in moments {
        let n = window.starts_left(rate, at(*ms)).min(*wanted);
        window.take(rate, n, at(*ms));
        window = Window::from_bytes(&window.to_bytes()).expect("what was written can be read");
        starts.extend(std::iter::repeat_n(*ms, usize::try_from(n).expect("it is small")));
    }
    starts
}

fn most_in_a_window(starts: &[i64], per_ms: i64) -> usize {
    let within = |from: &i64| starts.iter().filter(|start| (*from..from + per_ms).contains(*start)).count();
    starts.iter().map(within).max().unwrap_or_default()
}

proptest! {
    #[test]
    fn a_rate_is_never_exceeded_in_any_window(
        count in 1_u32..40,
        per_ms in 1_i64..5_000,
        steps in proptest::collection::vec((0_i64..700, 0_u32..50), 1..200),
        spread: bool,
    ) {
        let mut now = 0;
        let moments: Vec<(i64, u32)> = steps.iter().map(|(step, wanted)| { now += step; (now, *wanted) }).collect();
        let rate = Rate { count, per_ms, spread };
        let starts = starts(&rate, &moments);
        let most = usize::try_from(count).expect("it is small");
        prop_assert!(most_in_a_window(&starts, per_ms) <= most);
    }

    #[test]
    fn what_is_closed_opens_when_it_says_and_not_before(
        count in 1_u32..40, per_ms in 1_i64..100_000, spread: bool, phase in 0_i64..100_000,
    ) {
        let rate = Rate { count, per_ms, spread };
        let mut window = Window::default();
        let now = at(phase);
        while window.starts_left(&rate, now) > 0 {
            window.take(&rate, 1, now);
        }
        let opens = window.opens_at(&rate, now);
        prop_assert!(opens > now);
        prop_assert!(opens.since_ms(now) <= per_ms + per_ms / PARTS + 2);
        prop_assert!(window.starts_left(&rate, opens) > 0);
        prop_assert_eq!(window.starts_left(&rate, opens.plus_ms(-1)), 0);
    }

    #[test]
    fn a_clock_that_is_put_back_holds_a_limit_for_a_period_at_most(
        count in 1_u32..40, per_ms in 16_i64..100_000, back in 0_i64..10_000_000_000, spread: bool,
    ) {
        let rate = Rate { count, per_ms, spread };
        let mut window = Window::default();
        window.take(&rate, count, at(0));
        let now = at(-back);
        prop_assert!(window.opens_at(&rate, now).since_ms(now) <= per_ms + per_ms / PARTS + 2);
        if !spread {
            prop_assert_eq!(window.starts_left(&rate, now), 0, "it is not opened by the step either");
        }
    }

    #[test]
    fn garbage_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(window) = Window::from_bytes(&bytes) {
            prop_assert_eq!(window.to_bytes(), bytes);
        }
    }
}

#[test]
fn under_steady_load_fifteen_sixteenths_are_reached() {
    for (count, per_ms) in [(20, 1_000), (1, 1_000), (7, 333), (1_000, 60_000)] {
        let rate = rate(count, per_ms);
        let ms = 60 * per_ms;
        let moments: Vec<(i64, u32)> = (0..ms).map(|ms| (ms, 3)).collect();
        let reached = i64::try_from(starts(&rate, &moments).len()).expect("it is small");
        let due = i64::from(count) * 60;
        assert!(reached * PARTS >= due * (PARTS - 1), "{reached} of {due} at {count} in {per_ms} ms");
        assert!(reached <= due);
    }
}

#[test]
fn spread_starts_are_a_gap_apart() {
    let rate = Rate { count: 4, per_ms: 1_000, spread: true };
    let moments: Vec<(i64, u32)> = (0..3_000).map(|ms| (ms, 5)).collect();
    assert_eq!(starts(&rate, &moments), (0..12).map(|n| n * 250).collect::<Vec<_>>());
    let fast = Rate { count: 10_000, per_ms: 1_000, spread: true };
    let moments: Vec<(i64, u32)> = (0..100).map(|ms| (ms, 50)).collect();
    assert_eq!(starts(&fast, &moments).len(), 1_000, "ten in each millisecond");
}

#[test]
fn a_period_that_is_changed_forgets_nothing() {
    let mut window = Window::default();
    window.take(&rate(5, 1_000), 5, at(0));
    assert_eq!(window.starts_left(&rate(6, 60_000), at(10)), 1);
    assert_eq!(window.starts_left(&rate(5, 60_000), at(10)), 0);
}

#[test]
fn slots_and_holds_come_before_the_rate() {
    let window = Window::default();
    let settings = LimitSettings { max_running: Some(3), rate: Some(rate(2, 1_000)) };
    let of = |running, hold| room(&settings, running, (&window, hold), at(0));
    assert_eq!(of(0, None), Room::Open(2));
    assert_eq!(of(2, None), Room::Open(1));
    assert_eq!(of(3, None), Room::Full);
    assert_eq!(of(9, None), Room::Full);
    assert_eq!(of(0, Some(at(1))), Room::Until(at(1)));
    assert_eq!(of(0, Some(at(0))), Room::Open(2));
    assert_eq!(room(&LimitSettings::default(), 9, (&window, None), at(0)), Room::Open(u32::MAX));
    let none = LimitSettings { max_running: Some(0), rate: None };
    assert_eq!(room(&none, 0, (&window, None), at(0)), Room::Full);
}

#[test]
fn no_number_overflows() {
    for (count, per_ms) in [(1, 1), (1_000_000, 10), (1_000_000, 86_400_000), (u32::MAX, i64::MAX)] {
        for spread in [false, true] {
            let rate = Rate { count, per_ms, spread };
            let mut window = Window::default();
            for now in [at(0), Timestamp::from_millis(i64::MAX), Timestamp::from_millis(i64::MIN)] {
                window.take(&rate, u32::MAX, now);
                assert!(window.starts_left(&rate, now) <= count);
                assert!(window.opens_at(&rate, now) >= now);
            }
        }
    }
}
