//! Rates against a brute force over all windows.

use proptest::collection::vec;
use proptest::prelude::*;
use tagwerk_core::gate::{Rate, Window};
use tagwerk_core::{Timestamp, limits};

/// A round number of no period, so that sub-windows begin anywhere.
const START_MS: i64 = 1_780_000_123_457;

const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + ms)
}

const fn counted(count: u32, per_ms: i64) -> Rate {
    Rate { count, per_ms, spread: false }
}

const fn spread(count: u32, per_ms: i64) -> Rate {
    Rate { count, per_ms, spread: true }
}

/// Rates of every size that is allowed, small ones more often.
fn rates() -> impl Strategy<Value = Rate> {
    let count = prop_oneof![4 => 1_u32..30, 1 => 1_u32..=1_000_000];
    let per_ms = prop_oneof![2 => 1_i64..60, 3 => 10_i64..5_000, 1 => 10_i64..=limits::DAY_MS];
    (count, per_ms, any::<bool>()).prop_map(|(count, per_ms, spread)| Rate { count, per_ms, spread })
}

/// Steps between questions, in thousandths of a period, and how many starts are wanted then.
fn steps() -> impl Strategy<Value = Vec<(i64, u32)>> {
    let step = prop_oneof![3 => 0_i64..80, 1 => 0_i64..1_500];
    vec((step, prop_oneof![1_u32..8, Just(u32::MAX)]), 1..150)
}

/// Takes what is let through, up to `wanted`; what a store keeps in between is the same window.
fn take(window: &mut Window, rate: &Rate, (wanted, now): (u32, Timestamp)) -> u32 {
    window.settle(rate, now);
    let n = window.starts_left(rate, now).min(wanted);
    window.take(rate, n, now);
    assert_eq!(Window::from_bytes(&window.to_bytes()).as_ref(), Some(&*window));
    n
}

/// The most that ever started within a half-open window of this length. One that begins with a start is as bad as any.
fn most_within(starts: &[(i64, u32)], per_ms: i64) -> u64 {
    let within = |from: i64| starts.iter().filter(move |(ms, _)| (from..from + per_ms).contains(ms));
    let sum = |(from, _): &(i64, u32)| within(*from).map(|(_, n)| u64::from(*n)).sum();
    starts.iter().filter(|(_, n)| *n > 0).map(sum).max().unwrap_or_default()
}

proptest! {
    #[test]
    fn never_more_than_the_count_in_any_window(rate in rates(), steps in steps(), phase in 0_i64..limits::DAY_MS) {
        let (mut window, mut now, mut starts) = (Window::default(), phase, Vec::new());
        for (step, wanted) in steps {
            now += step * rate.per_ms / 1_000;
            starts.push((now, take(&mut window, &rate, (wanted, at(now)))));
        }
        prop_assert!(most_within(&starts, rate.per_ms) <= u64::from(rate.count));
        prop_assert!(starts.iter().any(|(_, n)| *n > 0), "the first is let through");
    }

    #[test]
    fn what_is_closed_opens_when_it_says_and_not_a_millisecond_before(
        rate in rates(), steps in steps(), phase in 0_i64..limits::DAY_MS,
    ) {
        let (mut window, mut now) = (Window::default(), phase);
        for (step, wanted) in steps {
            now += step * rate.per_ms / 1_000;
            take(&mut window, &rate, (wanted, at(now)));
            let opens = window.opens_at(&rate, at(now));
            prop_assert!(window.starts_left(&rate, opens) > 0);
            prop_assert_eq!(opens == at(now), window.starts_left(&rate, at(now)) > 0);
            prop_assert!(opens == at(now) || window.starts_left(&rate, opens.plus_ms(-1)) == 0);
            prop_assert!(opens.since_ms(at(now)) <= rate.per_ms + rate.per_ms / 16 + 2);
        }
    }

    /// Whoever always waits until it opens and takes all there is gets fifteen sixteenths of the rate.
    #[test]
    fn fifteen_sixteenths_are_reached_under_load(rate in rates(), phase in 0_i64..limits::DAY_MS) {
        let (mut window, mut now, mut got) = (Window::default(), at(phase), 0);
        let end = now.plus_ms(rate.per_ms * 40);
        for _ in 0..5_000 {
            if now >= end {
                break;
            }
            got += u64::from(take(&mut window, &rate, (u32::MAX, now)));
            now = window.opens_at(&rate, now);
        }
        // In so many periods; a spread rate of many starts is not followed to the end.
        let parts = u64::try_from(now.since_ms(at(phase)) * 16).expect("it moved on");
        let due = u128::from(parts) * u128::from(rate.count) * 15 / 256 / u128::try_from(rate.per_ms).expect("positive");
        prop_assert!(u128::from(got) >= due, "{got} of {due}");
    }

    /// Real time goes on while the clock is put back now and then: what counts is real time.
    #[test]
    fn a_clock_that_is_put_back_opens_nothing_early(
        rate in rates(), steps in steps(), back in vec(0_i64..3_000, 1..150), phase in 0_i64..limits::DAY_MS,
    ) {
        let (mut window, mut real, mut offset, mut starts) = (Window::default(), phase, 0, Vec::new());
        for ((step, wanted), back) in steps.into_iter().zip(back) {
            real += step * rate.per_ms / 1_000;
            // One in four questions comes after a step, from a part of a sub-window up to three periods.
            offset += if back % 4 == 0 { back * rate.per_ms / 1_000 } else { 0 };
            starts.push((real, take(&mut window, &rate, (wanted, at(real - offset)))));
        }
        prop_assert!(most_within(&starts, rate.per_ms) <= u64::from(rate.count));
    }

    #[test]
    fn a_clock_that_is_put_back_holds_nothing_for_more_than_seventeen_sub_windows(
        rate in rates(), back in 0_i64..10 * limits::DAY_MS,
    ) {
        let mut window = Window::default();
        take(&mut window, &rate, (u32::MAX, at(0)));
        let first_look = at(-back);
        window.settle(&rate, first_look);
        let opens = window.opens_at(&rate, first_look);
        let longest_ms = rate.per_ms + (rate.per_ms + 15) / 16 + 1;
        prop_assert!(opens.since_ms(first_look) <= longest_ms);
        // Looks in between do not put it off, though nothing is taken.
        let mut now = first_look;
        while now < opens {
            prop_assert_eq!(window.starts_left(&rate, now), 0);
            prop_assert!(!window.settle(&rate, now), "seen once");
            prop_assert_eq!(window.opens_at(&rate, now), opens);
            now = now.plus_ms((rate.per_ms / 7).max(1));
        }
        prop_assert!(window.starts_left(&rate, opens) > 0);
    }

    /// What the old period still sees counts in the new one.
    #[test]
    fn a_change_of_the_rate_opens_nothing_early(
        before in rates(), count in 1_u32..30, share in 1_i64..=1_000, steps in steps(), at_step in 0_usize..150,
    ) {
        let after = counted(count, (before.per_ms * share / 1_000).max(1));
        let (mut window, mut now, mut starts) = (Window::default(), 0, Vec::new());
        for (index, (step, wanted)) in steps.into_iter().enumerate() {
            let is_changed = index >= at_step;
            let rate = if is_changed { after } else { before };
            now += step * before.per_ms / 1_000;
            let n = take(&mut window, &rate, (wanted, at(now)));
            starts.push((now, n));
            if is_changed && n > 0 {
                let recent = starts.iter().filter(|(ms, _)| *ms > now - after.per_ms).map(|(_, n)| u64::from(*n));
                prop_assert!(recent.sum::<u64>() <= u64::from(count));
            }
        }
    }

    #[test]
    fn garbage_is_refused(bytes in vec(any::<u8>(), 0..200), place in 0_usize..200) {
        prop_assert_eq!(Window::from_bytes(&bytes), None, "the version or the length is wrong");
        let mut window = Window::default();
        window.take(&counted(3, 1_000), 2, at(0));
        let mut kept = window.to_bytes();
        let place = place % kept.len();
        kept[place] ^= bytes.first().copied().unwrap_or(1).max(1);
        // A changed byte is another window, or none; never one that stands for two texts, and none that breaks the rule.
        if let Some(other) = Window::from_bytes(&kept) {
            prop_assert_eq!(other.to_bytes(), kept);
            prop_assert!(other.starts_left(&counted(3, 1_000), at(5)) <= 3);
            prop_assert!(other.opens_at(&counted(3, 1_000), at(5)) >= at(5));
        }
    }
}

#[test]
fn bytes_of_the_wrong_length_version_or_meaning_are_refused() {
    let mut window = Window::default();
    let mut unused = window.to_bytes();
    assert_eq!(Window::from_bytes(&unused), Some(window.clone()));
    unused[9] = 1;
    assert_eq!(Window::from_bytes(&unused), None, "a sub-window, but of no period");
    window.take(&counted(3, 10), 2, at(0));
    let kept = window.to_bytes();
    assert_eq!(kept.len(), 101);
    assert_eq!(Window::from_bytes(&kept), Some(window));
    assert_eq!(Window::from_bytes(&[]), None);
    assert_eq!(Window::from_bytes(&kept[..100]), None);
    assert_eq!(Window::from_bytes(&[kept.as_slice(), &[0]].concat()), None);
    let changed = |place: usize, to: u8| {
        let mut bytes = kept.clone();
        bytes[place] = to;
        Window::from_bytes(&bytes)
    };
    assert_eq!(changed(0, 2), None, "another version");
    assert_eq!(changed(8, 0xff), None, "a negative period");
    assert_eq!(changed(32, 0x7f), None, "a place beyond all times");
    assert_eq!(changed(100, 1), None, "a sub-window that a period of 10 ms does not have");
}

#[test]
fn a_rate_of_twenty_a_second_gives_eighteen_and_three_quarters_to_twenty() {
    let (rate, mut window) = (counted(20, limits::SECOND_MS), Window::default());
    let starts: Vec<_> = (0..30_000).map(|ms| (ms, take(&mut window, &rate, (1, at(ms))))).collect();
    let got: u32 = starts.iter().map(|(_, n)| n).sum();
    assert!((563..=600).contains(&got), "{got}");
    assert_eq!(most_within(&starts, limits::SECOND_MS), 20);
}

#[test]
fn a_short_period_is_counted_by_the_millisecond() {
    for per_ms in [1, 10, 17] {
        let (rate, mut window) = (counted(5, per_ms), Window::default());
        assert_eq!(take(&mut window, &rate, (9, at(0))), 5);
        assert_eq!(window.opens_at(&rate, at(0)), at(per_ms), "all of the rate is reached");
    }
}

#[test]
fn spread_starts_are_a_gap_apart_and_reach_the_rate() {
    let (rate, mut window) = (spread(4, limits::SECOND_MS), Window::default());
    let starts: Vec<_> = (0..3_000).filter(|ms| take(&mut window, &rate, (5, at(*ms))) > 0).collect();
    assert_eq!(starts, (0..12).map(|n| n * 250).collect::<Vec<_>>());
    // Ten in each millisecond; two in three milliseconds; one in 1.5 ms of which nobody asks in time.
    for (count, asked_every_ms, expected) in [(10_000, 1, 10_000), (667, 1, 667), (667, 2, 500)] {
        let (rate, mut window) = (spread(count, limits::SECOND_MS), Window::default());
        let asked = (0..limits::SECOND_MS).filter(|ms| ms % asked_every_ms == 0);
        let got: u32 = asked.map(|ms| take(&mut window, &rate, (u32::MAX, at(ms)))).sum();
        assert_eq!(got, expected, "{count} a second, asked every {asked_every_ms} ms");
    }
}

/// Where a gap divides the millisecond, a place lies at its very end, and belongs to the next one.
#[test]
fn spread_starts_of_whole_parts_of_a_millisecond_are_as_many_in_each_and_none_is_lost() {
    for (count, per_ms, in_each_ms) in [(1_000, 1_000, 1), (2_000, 1_000, 2), (524_288, 16, 32_768)] {
        let (rate, mut window) = (spread(count, per_ms), Window::default());
        for ms in 0..64 {
            assert_eq!(take(&mut window, &rate, (u32::MAX, at(ms))), in_each_ms, "{rate:?}, {ms} ms");
        }
    }
}

#[test]
fn spread_starts_make_no_burst_after_a_pause() {
    let (rate, mut window) = (spread(4, limits::SECOND_MS), Window::default());
    assert_eq!(take(&mut window, &rate, (9, at(0))), 1);
    assert_eq!(take(&mut window, &rate, (9, at(limits::HOUR_MS))), 1);
    assert_eq!(window.opens_at(&rate, at(limits::HOUR_MS)), at(limits::HOUR_MS + 250));
}

/// A start late in its sub-window, and a step from early in the next to late in the one before: with its full age it would
/// leave a sub-window too early.
#[test]
fn a_step_back_over_the_edge_of_a_sub_window_opens_nothing_early() {
    let (rate, mut window) = (counted(1, 1_600), Window::default());
    let at = |ms: i64| Timestamp::from_millis(1_600_000_000_000 + ms);
    assert_eq!(take(&mut window, &rate, (1, at(99))), 1);
    assert!(!window.settle(&rate, at(100)), "time passes");
    assert!(window.settle(&rate, at(50)), "the clock is put back");
    assert_eq!(window.opens_at(&rate, at(50)), at(1_700), "1,651 ms after the start");
    // Once more, and it begins anew, but does not grow older than that.
    assert!(window.settle(&rate, at(-1)));
    assert_eq!(window.opens_at(&rate, at(-1)), at(1_600));
}

#[test]
fn a_longer_period_counts_what_the_old_one_saw() {
    let mut window = Window::default();
    window.take(&counted(5, limits::SECOND_MS), 5, at(0));
    assert_eq!(window.starts_left(&counted(6, limits::MINUTE_MS), at(10)), 1);
    assert_eq!(window.starts_left(&counted(5, limits::MINUTE_MS), at(10)), 0);
    assert_eq!(window.starts_left(&counted(5, limits::MINUTE_MS), at(limits::HOUR_MS)), 5);
}

#[test]
fn a_change_of_the_rate_is_made_once_and_counts_in_the_new_period_from_then_on() {
    let (short, long) = (counted(5, limits::SECOND_MS), counted(5, limits::MINUTE_MS));
    let mut window = Window::default();
    window.take(&short, 5, at(0));
    assert!(window.settle(&long, at(10)), "the rate was changed");
    assert!(!window.settle(&long, at(20)), "known");
    assert_eq!(window.starts_left(&long, at(50_000)), 0, "long after the old period");
    window.take(&long, 0, at(50_000));
    assert!(window.settle(&short, at(50_010)));
    assert_eq!(window.starts_left(&short, at(50_010)), 5, "long before the end of the old period");
}

/// A start is as young as it can be, and no younger: it would hold the new rate for a sub-window too long.
#[test]
fn a_change_of_the_rate_takes_each_start_for_one_at_the_end_of_its_sub_window() {
    let at = |ms: i64| Timestamp::from_millis(1_600_000_000_000 + ms);
    // From sub-windows of 100 ms to those of a second.
    let (before, after) = (counted(1, 1_600), counted(1, 16_000));
    let opens = |start: i64, change: i64| {
        let mut window = Window::default();
        window.take(&before, 1, at(start));
        window.settle(&after, at(change));
        window.opens_at(&after, at(change))
    };
    assert_eq!(opens(900, 1_500), at(17_000), "in the first second, if only just");
    assert_eq!(opens(1_000, 1_500), at(18_000));
    assert_eq!(opens(1_999, 1_999), at(18_000), "not later than now");
}

#[test]
fn no_number_overflows() {
    let ends = [at(0), Timestamp::MAX, Timestamp::from_millis(i64::MIN), Timestamp::from_millis(-1)];
    for (count, per_ms) in
        [(0, 0), (1, -1), (1, 1), (1_000_000, 10), (u32::MAX, 18), (1, i64::MAX), (u32::MAX, i64::MAX)]
    {
        for is_spread in [false, true] {
            let rate = Rate { count, per_ms, spread: is_spread };
            let mut window = Window::default();
            for now in ends.iter().chain(ends.iter().rev()) {
                window.take(&rate, u32::MAX, *now);
                assert!(window.starts_left(&rate, *now) <= count);
                assert!(window.opens_at(&rate, *now) >= *now);
                assert_eq!(Window::from_bytes(&window.to_bytes()), Some(window.clone()));
            }
        }
    }
}
