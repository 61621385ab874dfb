//! Rates: so many starts within a period, and never more in any window of that length.
//!
//! **Counted** (the usual form). A period has sixteen sub-windows. The starts of the current one and of the sixteen before
//! it are counted, and together they may not pass the rate. Any half-open window of one period lies within seventeen
//! sub-windows, so none has more starts than the rate says. What was taken comes back seventeen sub-windows later, so under
//! steady load 16/17 of the rate are reached. A bucket that fills up would let almost twice the count through in some
//! window, and remote services ban for that. Periods of up to 17 ms are counted by the millisecond and reach all of the rate.
//!
//! **Spread**. Each start has a place on a line on which neighbours are `per / count` apart; a start happens in the
//! millisecond in which its place lies. There is no burst after a pause. The rate is reached in full by who asks each
//! millisecond; gaps are at least `per / count`, rounded down to the clock's milliseconds.
//!
//! **The clock.** Put back, it neither opens a rate early nor holds it for longer than seventeen sub-windows (spread: one
//! gap) from the moment when [`Window::settle`] sees it. Put forward, it opens it early, once: nothing in a reading tells
//! such a step from time that has passed.
//!
//! **A change of the rate** forgets no start that the old period could still see: what the new one bounds is bounded at
//! once. A spread rate that is lowered still lets the one start through for which the old gap is over.
//!
//! **Kept** as bytes ([`Window::to_bytes`]) of a fixed length with a version in front; other bytes are refused.

use crate::Timestamp;

/// Sub-windows of a period.
const PARTS: i64 = 16;
/// Counted sub-windows: the current one and those before it that a window of one period can reach into.
const COUNTED: usize = 17;
/// First byte of [`Window::to_bytes`].
const VERSION: u8 = 1;
/// Places of spread starts are kept in parts of a millisecond, 2^-32 each: a gap of ten nanoseconds has 42,949 of them.
const PLACE_BITS: u32 = 32;
const MILLISECOND: i128 = 1 << PLACE_BITS;

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

impl Rate {
    /// A period of nothing would divide by nothing.
    fn per_ms(&self) -> i64 {
        self.per_ms.max(1)
    }

    /// Between two starts that are spread, rounded up to parts.
    fn gap(&self) -> i128 {
        let count = i128::from(self.count.max(1));
        ((i128::from(self.per_ms()) << PLACE_BITS) + count - 1) / count
    }
}

/// The starts of a rate within its period.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// The period that the sub-windows were counted for; 0 = nothing was counted yet.
    per_ms: i64,
    /// Number of the current sub-window since 1970.
    part: i64,
    /// Starts by sub-window, the current one first. Spread starts are counted too, in case the rate stops being spread.
    starts: [u32; COUNTED],
    /// The earliest place of the next start, should it be spread, in parts of a millisecond since 1970.
    next: i128,
}

impl Window {
    /// How many may start now.
    #[must_use]
    pub fn starts_left(&self, rate: &Rate, now: Timestamp) -> u32 {
        let window = self.settled(rate, now);
        if !rate.spread {
            return rate.count.saturating_sub(window.sum());
        }
        // Every place within this millisecond.
        let (from, end) = (window.next.max(place(now)), place(now) + MILLISECOND);
        let starts = if from < end { (end - from - 1) / rate.gap() + 1 } else { 0 };
        u32::try_from(starts).unwrap_or(u32::MAX).min(rate.count)
    }

    /// When the next may start; now, if it may now.
    #[must_use]
    pub fn opens_at(&self, rate: &Rate, now: Timestamp) -> Timestamp {
        let window = self.settled(rate, now);
        if rate.spread {
            return Timestamp::from_millis(narrow(window.next >> PLACE_BITS)).max(now);
        }
        // The oldest leave first; it opens when enough of them are out of sight.
        let counted = counted(window.per_ms);
        let mut left = window.sum();
        let mut passed = 0;
        for starts in window.starts.iter().take(counted).rev() {
            if left < rate.count {
                break;
            }
            left = left.saturating_sub(*starts);
            passed += 1;
        }
        begin_of(window.part.saturating_add(passed), window.per_ms).max(now)
    }

    /// Spends `n` starts. They never come back, whatever becomes of the jobs.
    pub fn take(&mut self, rate: &Rate, n: u32, now: Timestamp) {
        self.settle(rate, now);
        let [current, ..] = &mut self.starts;
        *current = current.saturating_add(n);
        let next = if rate.spread {
            self.next.max(place(now)).saturating_add(rate.gap().saturating_mul(i128::from(n)))
        } else {
            place(now).saturating_add(rate.gap())
        };
        self.next = next.min(place(Timestamp::MAX));
    }

    /// Brings the window to this moment and rate. True if that is more than time passing: the clock was put back, or the
    /// rate was changed.
    ///
    /// Whoever keeps the window keeps it after this, if only in memory. A window that lies ahead of the clock is otherwise
    /// met anew at each look, and closed for another period each time until the clock has caught up.
    pub fn settle(&mut self, rate: &Rate, now: Timestamp) -> bool {
        let is_recounted = if self.per_ms == 0 {
            (self.per_ms, self.part) = (rate.per_ms(), part_of(now, rate.per_ms()));
            false
        } else {
            let is_put_back = self.advance(now);
            let is_changed = self.per_ms != rate.per_ms();
            if is_changed {
                self.recount(rate.per_ms(), now);
            }
            is_put_back || is_changed
        };
        // The place of the last start lay in its millisecond, so the next is no more than that and a gap away.
        let latest = place(now).saturating_add(MILLISECOND).saturating_add(rate.gap());
        let is_ahead = self.next > latest;
        self.next = self.next.min(latest);
        is_recounted || (is_ahead && rate.spread)
    }

    /// Moves on to this moment; true if the clock was put back.
    ///
    /// Then all starts keep their age, less one sub-window: where in its sub-window a start lay is not known, and with its
    /// full age it could leave too early by as much.
    fn advance(&mut self, now: Timestamp) -> bool {
        let part = part_of(now, self.per_ms);
        let is_put_back = part < self.part;
        let mut starts = [0; COUNTED];
        let counted = counted(self.per_ms);
        for (age, n) in self.starts.iter().enumerate() {
            let passed = usize::try_from(part.saturating_sub(self.part)).unwrap_or(0);
            let age = if is_put_back { age.saturating_sub(1) } else { age.saturating_add(passed) };
            add(&mut starts[..counted], age, *n);
        }
        (self.part, self.starts) = (part, starts);
        is_put_back
    }

    /// Counts anew in sub-windows of another period, each start as of the last moment at which it can have been.
    fn recount(&mut self, per_ms: i64, now: Timestamp) {
        let mut starts = [0; COUNTED];
        let current = part_of(now, per_ms);
        let counted = counted(per_ms);
        let mut after = self.part.saturating_add(1);
        for n in self.starts {
            let at = begin_of(after, self.per_ms).plus_ms(-1).min(now);
            let age = current.saturating_sub(part_of(at, per_ms));
            add(&mut starts[..counted], usize::try_from(age).unwrap_or(0), n);
            after = after.saturating_sub(1);
        }
        (self.per_ms, self.part, self.starts) = (per_ms, current, starts);
    }

    fn settled(&self, rate: &Rate, now: Timestamp) -> Self {
        let mut window = self.clone();
        window.settle(rate, now);
        window
    }

    fn sum(&self) -> u32 {
        self.starts.iter().fold(0, |sum, starts| sum.saturating_add(*starts))
    }

    /// As bytes to be kept. Equal windows have equal bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.per_ms.to_le_bytes());
        bytes.extend(self.part.to_le_bytes());
        bytes.extend(self.next.to_le_bytes());
        bytes.extend(self.starts.iter().flat_map(|starts| starts.to_le_bytes()));
        bytes
    }

    /// From bytes that [`Window::to_bytes`] made; `None` for others.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk()?;
        let (per_ms, rest) = rest.split_first_chunk()?;
        let (part, rest) = rest.split_first_chunk()?;
        let (next, mut rest) = rest.split_first_chunk()?;
        let mut window = Self {
            per_ms: i64::from_le_bytes(*per_ms),
            part: i64::from_le_bytes(*part),
            starts: [0; COUNTED],
            next: i128::from_le_bytes(*next),
        };
        for starts in &mut window.starts {
            let (first, others) = rest.split_first_chunk()?;
            (*starts, rest) = (u32::from_le_bytes(*first), others);
        }
        (*version == [VERSION] && rest.is_empty() && window.is_possible()).then_some(window)
    }

    /// Whether starts can have led to it.
    fn is_possible(&self) -> bool {
        let is_unused = || *self == Self::default();
        let is_counted = || self.per_ms > 0 && self.starts.iter().skip(counted(self.per_ms)).all(|n| *n == 0);
        let places = place(Timestamp::from_millis(i64::MIN))..=place(Timestamp::MAX);
        places.contains(&self.next) && (is_unused() || is_counted())
    }
}

fn add(starts: &mut [u32], age: usize, n: u32) {
    if let Some(starts) = starts.get_mut(age) {
        *starts = starts.saturating_add(n);
    }
}

/// Whether sub-windows are single milliseconds: a period that has no more of them than are counted.
fn is_by_the_millisecond(per_ms: i64) -> bool {
    usize::try_from(per_ms).is_ok_and(|ms| ms <= COUNTED)
}

/// Sub-windows that count in this period.
fn counted(per_ms: i64) -> usize {
    if is_by_the_millisecond(per_ms) { usize::try_from(per_ms).unwrap_or(COUNTED) } else { COUNTED }
}

fn part_of(at: Timestamp, per_ms: i64) -> i64 {
    if is_by_the_millisecond(per_ms) {
        return at.as_millis();
    }
    narrow((i128::from(at.as_millis()) * i128::from(PARTS)).div_euclid(i128::from(per_ms)))
}

/// The first millisecond of a sub-window.
fn begin_of(part: i64, per_ms: i64) -> Timestamp {
    if is_by_the_millisecond(per_ms) {
        return Timestamp::from_millis(part);
    }
    let (scaled, parts) = (i128::from(part) * i128::from(per_ms), i128::from(PARTS));
    Timestamp::from_millis(narrow(scaled.div_euclid(parts) + i128::from(scaled.rem_euclid(parts) != 0)))
}

fn place(at: Timestamp) -> i128 {
    i128::from(at.as_millis()) << PLACE_BITS
}

/// The nearest number of 64 bits.
fn narrow(wide: i128) -> i64 {
    let nearest = wide.clamp(i64::MIN.into(), i64::MAX.into());
    i64::try_from(nearest).unwrap_or_default()
}
