//! Back-off.

use proptest::prelude::*;
use tagwerk_core::retry::{backoff_ms, first_loss_ms};
use tagwerk_core::{Jitter, RetryOverrides, RetryPolicy};

const fn policy(base_ms: i64, factor: f64, cap_ms: i64, jitter: Jitter) -> RetryPolicy {
    RetryPolicy { base_ms, factor, cap_ms, jitter }
}

#[test]
fn defaults_are_the_documented_ones() {
    assert_eq!(RetryPolicy::default(), policy(5_000, 2.0, 3_600_000, Jitter::Equal));
}

#[test]
fn doubles_up_to_the_cap() {
    let policy = policy(5_000, 2.0, 3_600_000, Jitter::None);
    let delays: Vec<_> = (1..=12).map(|n| backoff_ms(&policy, n, 0)).collect();
    let expected =
        [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600].map(|seconds| seconds * 1_000);
    assert_eq!(delays, expected);
}

#[test]
fn f073_delays_never_leave_the_cap() {
    let policy = policy(1_000, 2.0, 3_600_000, Jitter::Equal);
    for n in 1..=100 {
        for random in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!((500..=3_600_000).contains(&backoff_ms(&policy, n, random)), "retry {n}");
        }
    }
}

#[test]
fn f074_delays_at_the_widths_of_integers_are_the_cap() {
    for n in [30, 31, 32, 62, 63, 64, 127, 128, 1_000, 1_001, u32::MAX - 1, u32::MAX] {
        assert_eq!(backoff_ms(&policy(1_000, 2.0, 60_000, Jitter::None), n, 7), 60_000, "retry {n}");
    }
}

#[test]
fn f075_the_power_does_not_overflow_before_the_cap() {
    assert_eq!(backoff_ms(&policy(1_000, 1e6, 60_000, Jitter::None), 200, 7), 60_000);
    assert_eq!(backoff_ms(&policy(1, f64::MAX, i64::MAX, Jitter::None), 200, 7), i64::MAX);
    assert_eq!(backoff_ms(&policy(1, f64::INFINITY, 60_000, Jitter::None), 2, 7), 60_000);
}

#[test]
fn base_zero_retries_at_once() {
    for jitter in Jitter::ALL {
        assert_eq!(backoff_ms(&policy(0, 1e6, 60_000, *jitter), 200, u64::MAX), 0);
        assert_eq!(first_loss_ms(&policy(0, 2.0, 60_000, *jitter), u64::MAX), 0);
    }
}

#[test]
fn senseless_policies_are_harmless() {
    assert_eq!(backoff_ms(&policy(5_000, f64::NAN, 60_000, Jitter::None), 9, 0), 5_000);
    assert_eq!(backoff_ms(&policy(5_000, 0.1, 60_000, Jitter::None), 9, 0), 5_000);
    assert_eq!(backoff_ms(&policy(5_000, -3.0, 60_000, Jitter::None), 9, 0), 5_000);
    assert_eq!(backoff_ms(&policy(-5_000, 2.0, 60_000, Jitter::Full), 9, u64::MAX), 0);
    assert_eq!(backoff_ms(&policy(5_000, 2.0, -1, Jitter::Full), 9, u64::MAX), 0);
    assert_eq!(backoff_ms(&policy(5_000, 2.0, 60_000, Jitter::None), 0, 0), 5_000);
    assert_eq!(first_loss_ms(&policy(-1, 2.0, 60_000, Jitter::None), u64::MAX), 0);
}

#[test]
fn jitter_spans_its_whole_range() {
    let edges = |jitter, delay| {
        let policy = policy(delay, 1.0, delay, jitter);
        (backoff_ms(&policy, 1, 0), backoff_ms(&policy, 1, u64::MAX))
    };
    assert_eq!(edges(Jitter::None, 1_001), (1_001, 1_001));
    assert_eq!(edges(Jitter::Equal, 1_001), (501, 1_001), "never before half of it");
    assert_eq!(edges(Jitter::Equal, 1_000), (500, 1_000));
    assert_eq!(edges(Jitter::Full, 1_001), (0, 1_001));
    assert_eq!(edges(Jitter::Full, i64::MAX), (0, i64::MAX));
}

#[test]
fn f079_a_fleet_does_not_retry_in_step() {
    let policy = RetryPolicy::default();
    let mut slots = std::collections::BTreeMap::<i64, u32>::new();
    for job in 0..1_000_u64 {
        // A mixer stands in for the random source: what is tested is how bits become delays.
        let random = (job + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        *slots.entry(backoff_ms(&policy, 1, random) / 50).or_default() += 1;
    }
    let fullest = slots.values().max().copied().unwrap();
    assert!(fullest < 100, "{fullest} of 1000 share one 50 ms slot");
    assert!(slots.keys().all(|slot| (50..=100).contains(slot)));
}

#[test]
fn each_field_comes_from_the_first_level_that_names_it() {
    let job = RetryOverrides { base_ms: Some(1), ..RetryOverrides::default() };
    let type_ = RetryOverrides { base_ms: Some(2), factor: Some(3.0), ..RetryOverrides::default() };
    let queue = RetryOverrides { factor: Some(9.0), cap_ms: Some(4), ..RetryOverrides::default() };
    let server = policy(7, 7.0, 7, Jitter::Full);
    assert_eq!(job.or(type_).or(queue).resolve(&server), policy(1, 3.0, 4, Jitter::Full));
    assert_eq!(RetryOverrides::default().resolve(&server), server);
    let all =
        RetryOverrides { base_ms: Some(0), factor: Some(1.0), cap_ms: Some(0), jitter: Some(Jitter::None) };
    assert_eq!(all.or(type_).resolve(&server), policy(0, 1.0, 0, Jitter::None));
}

fn any_policy() -> impl Strategy<Value = RetryPolicy> {
    let jitter = prop::sample::select(Jitter::ALL.to_vec());
    (any::<i64>(), any::<f64>(), any::<i64>(), jitter)
        .prop_map(|(base_ms, factor, cap_ms, jitter)| policy(base_ms, factor, cap_ms, jitter))
}

fn sane_policy() -> impl Strategy<Value = RetryPolicy> {
    let jitter = prop::sample::select(Jitter::ALL.to_vec());
    (0..10_000_000_i64, 1.0..1e6_f64, 0..100_000_000_i64, jitter)
        .prop_map(|(base_ms, factor, cap_ms, jitter)| policy(base_ms, factor, cap_ms, jitter))
}

proptest! {
    #[test]
    fn any_policy_stays_between_zero_and_its_cap(policy in any_policy(), n: u32, random: u64) {
        let delay = backoff_ms(&policy, n, random);
        prop_assert!((0..=policy.cap_ms.max(0)).contains(&delay));
        let first = first_loss_ms(&policy, random);
        prop_assert!((0..=policy.base_ms.clamp(0, 1_000)).contains(&first));
    }

    #[test]
    fn jitter_stays_in_its_part_of_the_delay(policy in sane_policy(), n in 1..1_100_u32, random: u64) {
        let whole = backoff_ms(&RetryPolicy { jitter: Jitter::None, ..policy }, n, random);
        let delay = backoff_ms(&policy, n, random);
        let least = match policy.jitter {
            Jitter::None => whole,
            Jitter::Equal => (whole + 1) / 2,
            Jitter::Full => 0,
        };
        prop_assert!((least..=whole).contains(&delay), "{delay} of {whole}");
    }

    #[test]
    fn delays_never_shrink_with_the_retries(policy in sane_policy(), n in 1..1_100_u32) {
        let policy = RetryPolicy { jitter: Jitter::None, ..policy };
        prop_assert!(backoff_ms(&policy, n, 0) <= backoff_ms(&policy, n + 1, 0));
    }

    #[test]
    fn delays_are_the_formula(base_ms in 1..1_000_i64, factor in 1..10_i32, n in 1..12_u32) {
        let policy = policy(base_ms, f64::from(factor), 3_600_000, Jitter::None);
        let power = i128::from(factor).pow(n - 1) * i128::from(base_ms);
        prop_assert_eq!(i128::from(backoff_ms(&policy, n, 0)), power.min(3_600_000));
    }
}
