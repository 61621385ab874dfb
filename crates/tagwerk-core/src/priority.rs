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

    /// The priority with this level's name, or `None` if there is no such level.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        Self::LEVELS.into_iter().find(|(name, _)| *name == label).map(|(_, value)| Self(value))
    }

    /// The name of the highest level that is not above the value.
    #[must_use]
    pub const fn label(self) -> &'static str {
        let mut at = Self::LEVELS.len() - 1;
        while Self::LEVELS[at].1 > self.0 {
            at -= 1;
        }
        Self::LEVELS[at].0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `label` walks down to the lowest level, so that level has to take every value.
    #[test]
    fn levels_rise_from_zero() {
        assert_eq!(Priority::LEVELS[0].1, 0);
        assert!(Priority::LEVELS.is_sorted_by(|a, b| a.1 < b.1));
    }

    #[test]
    fn label_is_the_highest_level_not_above() {
        for (value, label) in [
            (0, "low"),
            (9, "low"),
            (10, "medium"),
            (19, "medium"),
            (20, "high"),
            (29, "high"),
            (30, "critical"),
            (100, "critical"),
        ] {
            assert_eq!(Priority::from_value(value).unwrap().label(), label, "{value}");
        }
        assert_eq!(Priority::from_value(101), None);
        assert_eq!(Priority::default().label(), "medium");
    }

    #[test]
    fn labels_name_their_value() {
        for (label, value) in Priority::LEVELS {
            assert_eq!(Priority::from_label(label).map(Priority::value), Some(value));
        }
        assert_eq!(Priority::from_label("High"), None);
        assert_eq!(Priority::from_label(""), None);
    }
}
