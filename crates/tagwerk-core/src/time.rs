//! Points in time as the domain knows them: milliseconds since the Unix epoch, UTC.

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z. 64 bit everywhere, so no field ends in 2038.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// Later than every time that a client may name.
    pub const MAX: Self = Self(i64::MAX);

    /// The point in time that lies `ms` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This time moved by `ms` milliseconds; stays at the ends of the range instead of wrapping.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time; negative when `earlier` is later.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}
