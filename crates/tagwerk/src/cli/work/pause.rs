//! Waiting: the one place of the worker where time passes by itself.

use std::time::Duration;

/// Lets time pass.
pub(super) async fn pause(length: Duration) {
    // tidy: sleep because heartbeats, time limits and back-off are waits for the clock; tests move real processes.
    tokio::time::sleep(length).await;
}

/// Lets time pass, or waits for ever.
pub(super) async fn pause_if(length: Option<Duration>) {
    match length {
        Some(length) => pause(length).await,
        None => std::future::pending().await,
    }
}

/// The wait after so many failures in a row: from a quarter second, doubling, up to ten seconds, spread by chance.
pub(super) fn backoff(failures: u32, chance: u64) -> Duration {
    let ms = 250_u64 << failures.saturating_sub(1).min(6);
    let ms = ms.min(10_000);
    Duration::from_millis(ms / 2 + chance % (ms / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_grows_to_ten_seconds() {
        for (failures, most) in [(0, 250), (1, 250), (2, 500), (3, 1_000), (7, 10_000), (1_000, 10_000)] {
            for chance in [0, 1, 17, u64::MAX] {
                let wait = backoff(failures, chance).as_millis();
                assert!(wait >= most / 2 && wait <= most, "{failures} {chance} {wait}");
            }
        }
    }
}
