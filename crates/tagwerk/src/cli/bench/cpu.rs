//! Processor time, as Linux tells it. Elsewhere nothing is said.

use std::time::Duration;

/// The unit in which Linux tells processor time to programs, whatever it counts in itself.
const TICK: Duration = Duration::from_millis(10);

/// Processor time used so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cpu {
    pub(super) client: Option<Duration>,
    pub(super) server: Option<Duration>,
}

impl Cpu {
    /// That of this process and, if its number is known, of the server.
    pub(super) fn now(server: Option<u32>) -> Self {
        let of = |name: &str| used(&std::fs::read_to_string(format!("/proc/{name}/stat")).ok()?);
        Self { client: of("self"), server: server.and_then(|pid| of(&pid.to_string())) }
    }

    /// What has been used since then.
    pub(super) fn since(&self, before: &Self) -> Self {
        let less = |now: Option<Duration>, before: Option<Duration>| Some(now?.saturating_sub(before?));
        Self { client: less(self.client, before.client), server: less(self.server, before.server) }
    }
}

/// User and system time of a line of `/proc/PID/stat`. The name in it may hold anything, so it is read from behind it.
fn used(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some(TICK * (next()? + next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_name() {
        let line = "42 (a) b (c) S 1 42 42 0 -1 4194560 900 0 0 0 150 50 0 0 20 0 3 0 1 2 3";
        assert_eq!(used(line), Some(Duration::from_secs(2)));
        assert_eq!(used("42 (x"), None);
        assert_eq!(used(""), None);
    }
}
