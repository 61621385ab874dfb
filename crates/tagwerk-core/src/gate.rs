//! Limits: how many jobs may run at a time under a name, and how many may start within a period.
//!
//! A rate is never exceeded in any window of its period: starts are counted in sub-windows of a sixteenth of the period, and
//! the current one and the sixteen before it count. So a window of any position is covered, and under steady load at least
//! fifteen sixteenths of the rate are reached. A bucket that fills up would let almost twice the count through in some
//! window, and remote services ban for that. With `spread` starts are spaced evenly instead (GCRA without a burst).

use crate::Timestamp;

/// Sub-windows of a period.
const PARTS: i64 = 16;
/// Counted sub-windows: the current one and those before it that a window of one period can reach into.
const COUNTED: usize = 17;
const MICROS: i64 = 1_000;
/// First byte of [`Window::to_bytes`].
const VERSION: u8 = 1;

/// What a limit bounds. Without either it bounds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LimitSettings {
    /// Jobs that may run at the same time.
    pub max_running: Option<u32>,
    /// Jobs that may start within a period.
    pub rate: Option<Rate>,
}

/// Starts within a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So many starts, at least 1.
    pub count: u32,
    /// The period in milliseconds, at least 1.
    pub per_ms: i64,
    /// Evenly spaced, `per_ms / count` apart, instead of as early as possible.
    pub spread: bool,
}

/// What a limit lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// So many, at least 1.
    Open(u32),
    /// Nothing until a job that runs under it ends.
    Full,
    /// Nothing before then.
    Until(Timestamp),
}

/// What a limit with these settings lets through now: `running` jobs run under it, `window` has its starts, and it is held
/// until `hold_until`.
#[must_use]
pub fn room(
    settings: &LimitSettings,
    running: u32,
    (window, hold_until): (&Window, Option<Timestamp>),
    now: Timestamp,
) -> Room {
    if let Some(until) = hold_until.filter(|until| *until > now) {
        return Room::Until(until);
    }
    let slots = settings.max_running.map_or(u32::MAX, |max| max.saturating_sub(running));
    if slots == 0 {
        return Room::Full;
    }
    let Some(rate) = &settings.rate else { return Room::Open(slots) };
    match window.starts_left(rate, now) {
        0 => Room::Until(window.opens_at(rate, now)),
        starts => Room::Open(slots.min(starts)),
    }
}

/// The starts of a rate within its period.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// The period that the sub-windows were counted for; 0 = nothing was counted yet.
    per_ms: i64,
    /// Number of the current sub-window since 1970.
    part: i64,
    /// Starts by sub-window, the current one first.
    starts: [u32; COUNTED],
    /// With `spread`: the earliest next start in microseconds since 1970.
    next_us: i64,
}

impl Window {
    /// How many may start now.
    #[must_use]
    pub fn starts_left(&self, rate: &Rate, now: Timestamp) -> u32 {
        if rate.spread {
            let now = micros(now);
            let (from, gap) = (self.next_start(rate, now).max(now), gap_us(rate));
            // The clock has milliseconds: what is due within this one may start.
            let end = now.saturating_add(MICROS - 1);
            let starts = if from > end { 0 } else { (end - from) / gap + 1 };
            return u32::try_from(starts).unwrap_or(u32::MAX).min(rate.count);
        }
        rate.count.saturating_sub(self.at(rate, now).sum())
    }

    /// When the next may start, if none may now: the beginning of the sub-window in which enough starts are out of sight.
    #[must_use]
    pub fn opens_at(&self, rate: &Rate, now: Timestamp) -> Timestamp {
        if rate.spread {
            return Timestamp::from_millis(self.next_start(rate, micros(now)) / MICROS).max(now);
        }
        let window = self.at(rate, now);
        let mut left = window.sum();
        let oldest_first = window.starts.iter().rev();
        let parts = oldest_first.take_while(|starts| {
            let is_full = left >= rate.count;
            left = left.saturating_sub(**starts);
            is_full
        });
        let parts = i64::try_from(parts.count()).unwrap_or(PARTS);
        Timestamp::from_millis(begin_of(window.part.saturating_add(parts), rate.per_ms)).max(now)
    }

    /// Spends `n` starts.
    pub fn take(&mut self, rate: &Rate, n: u32, now: Timestamp) {
        *self = self.at(rate, now);
        let from = self.next_start(rate, micros(now)).max(micros(now));
        self.next_us = from.saturating_add(gap_us(rate).saturating_mul(i64::from(n)));
        if let Some(current) = self.starts.first_mut() {
            *current = current.saturating_add(n);
        }
    }

    /// The window as it looks at `now`. If the clock was put back, all starts keep their age, so that the limit is held for
    /// a period at most. If the period was changed, all starts count as of now.
    fn at(&self, rate: &Rate, now: Timestamp) -> Self {
        let part = part_of(now, rate.per_ms);
        if self.per_ms != rate.per_ms {
            let mut starts = [0; COUNTED];
            if let Some(first) = starts.first_mut() {
                *first = self.sum();
            }
            return Self { per_ms: rate.per_ms, part, starts, next_us: self.next_us };
        }
        let passed = usize::try_from(part.saturating_sub(self.part)).unwrap_or(0).min(COUNTED);
        let mut starts = [0; COUNTED];
        for (to, from) in starts.iter_mut().skip(passed).zip(self.starts) {
            *to = from;
        }
        Self { part, starts, ..self.clone() }
    }

    fn sum(&self) -> u32 {
        self.starts.iter().fold(0, |sum, starts| sum.saturating_add(*starts))
    }

    /// With `spread`: the earliest next start, never further away than one gap, should the clock be put back.
    fn next_start(&self, rate: &Rate, now: i64) -> i64 {
        self.next_us.min(now.saturating_add(MICROS).saturating_add(gap_us(rate)))
    }

    /// As bytes to be kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for number in [self.per_ms, self.part, self.next_us] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.starts.iter().flat_map(|starts| starts.to_le_bytes()));
        bytes
    }

    /// From bytes that [`Window::to_bytes`] made; `None` for others.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[VERSION])?;
        let (numbers, counts) = rest.split_at_checked(3 * size_of::<i64>())?;
        let mut numbers =
            numbers.chunks_exact(size_of::<i64>()).map(|bytes| bytes.try_into().map(i64::from_le_bytes));
        let mut number = || numbers.next()?.ok();
        let (per_ms, part, next_us) = (number()?, number()?, number()?);
        let counts = counts.chunks(size_of::<u32>()).map(|bytes| bytes.try_into().map(u32::from_le_bytes));
        let counts: Vec<u32> = counts.collect::<Result<_, _>>().ok()?;
        Some(Self { per_ms, part, next_us, starts: counts.try_into().ok()? })
    }
}

fn part_of(at: Timestamp, per_ms: i64) -> i64 {
    at.as_millis().saturating_mul(PARTS).div_euclid(per_ms.max(1))
}

/// The first millisecond of a sub-window.
fn begin_of(part: i64, per_ms: i64) -> i64 {
    let scaled = part.saturating_mul(per_ms);
    scaled.div_euclid(PARTS) + i64::from(scaled.rem_euclid(PARTS) != 0)
}

const fn micros(at: Timestamp) -> i64 {
    at.as_millis().saturating_mul(MICROS)
}

/// Between two starts that are spread, in microseconds, rounded up.
fn gap_us(rate: &Rate) -> i64 {
    let count = i64::from(rate.count.max(1));
    rate.per_ms.saturating_mul(MICROS).saturating_add(count - 1) / count
}

#[cfg(test)]
mod tests;
