//! Priorities: an integer 0..=100 with four named levels.

/// A priority. Higher goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// The levels that have names, lowest first.
    pub const LEVELS: [(&'static str, u8); 4] = [("low", 0), ("medium", 10), ("high", 20), ("critical", 30)];
    /// The default: medium.
    pub const DEFAULT: Self = Self(10);
    /// The highest value.
    pub const MAX: u8 = 100;

    /// The priority with this value, or `None` above [`Priority::MAX`].
    #[must_use]
    pub const fn from_value(value: u8) -> Option<Self> {
        if value <= Self::MAX { Some(Self(value)) } else { None }
    }

    /// The value, 0..=100.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::DEFAULT
    }
}
