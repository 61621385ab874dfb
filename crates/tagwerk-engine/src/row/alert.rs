//! Alerts as they are kept.

use tagwerk_core::Timestamp;
use tagwerk_core::alert::{Kind, Open, Scope};

/// Ways on which somebody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ways(u8);

impl Ways {
    /// None.
    pub const NONE: Self = Self(0);
    /// `alerts.command`.
    pub const COMMAND: Self = Self(1);
    /// `alerts.webhook`.
    pub const WEBHOOK: Self = Self(2);

    /// Those of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not among these.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether some of these are among them.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// To be kept.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// As it is kept.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}

/// Somebody has looked at an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// When.
    pub at: Timestamp,
    /// Who: the name of a token, or `local`.
    pub by: String,
    /// A note, if one was left.
    pub note: Option<String>,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRow {
    /// Its number, rising; 0 before the store has given it one.
    pub id: i64,
    /// What.
    pub kind: Kind,
    /// Where.
    pub scope: Scope,
    /// When it opened.
    pub opened_at: Timestamp,
    /// When it last rang, to half a minute or so.
    pub seen_at: Timestamp,
    /// Since when it has been calm, while it is still open.
    pub calm_since: Option<Timestamp>,
    /// When it closed.
    pub closed_at: Option<Timestamp>,
    /// Who has looked at it.
    pub acknowledged: Option<Acknowledged>,
    /// Who is responsible; free text.
    pub owner: Option<String>,
    /// In words, as it last rang.
    pub detail: String,
    /// The figure, in the kind's unit, as it last rang.
    pub value: i64,
    /// From where on it rings.
    pub threshold: i64,
    /// Ways on which it has still to be told that it opened.
    pub due_opened: Ways,
    /// Ways on which it has still to be told that it closed.
    pub due_closed: Ways,
}

impl AlertRow {
    /// As it is judged.
    #[must_use]
    pub fn open(&self) -> Open {
        Open {
            id: self.id,
            kind: self.kind,
            scope: self.scope.clone(),
            last_seen: self.seen_at,
            calm_since: self.calm_since,
        }
    }
}

/// Which alerts are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertQuery {
    /// Go on behind this number.
    pub after: i64,
    /// Which.
    pub which: Which,
    /// At most this many.
    pub limit: usize,
}

/// Which alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// Those that are open.
    Open,
    /// Those that are closed.
    Closed,
    /// Those of which somebody has still to be told.
    Due,
}

impl Which {
    /// Whether an alert is one of them.
    #[must_use]
    pub fn takes(self, row: &AlertRow) -> bool {
        match self {
            Self::All => true,
            Self::Open => row.closed_at.is_none(),
            Self::Closed => row.closed_at.is_some(),
            Self::Due => row.due_opened.with(row.due_closed) != Ways::NONE,
        }
    }
}
