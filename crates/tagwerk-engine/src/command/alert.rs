//! Commands about alerts.

use std::collections::BTreeMap;

use tagwerk_core::alert::{Change, Scope};

use crate::row::{AlertRow, Ways};

/// What a look has led to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Judgement {
    /// What opens, goes on, closes.
    pub changes: Vec<Change>,
    /// Owners that are not those of the type's settings.
    pub owners: BTreeMap<Scope, String>,
    /// Ways on which openings and closings are to be told.
    pub ways: Ways,
    /// Entries into review by type that have been judged now.
    pub marks: Vec<(String, i64)>,
}

/// What was told of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// That it opened.
    Opened,
    /// That it closed.
    Closed,
}

impl Turn {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Closed => "closed",
        }
    }
}

/// A call about alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertCall {
    /// Writes what a look has led to. What is open already is not opened again.
    Judge(Judgement),
    /// Somebody has looked at it.
    Acknowledge {
        /// Its number.
        id: i64,
        /// A note.
        note: Option<String>,
    },
    /// It has been told on this way, or told in vain for the last time.
    Told {
        /// Its number.
        id: i64,
        /// Of what.
        turn: Turn,
        /// The way.
        way: Ways,
    },
}

/// Answer to an [`AlertCall`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertAnswer {
    /// Alerts that have opened, and those that have closed.
    Judged {
        /// Opened now.
        opened: Vec<AlertRow>,
        /// Closed now.
        closed: Vec<AlertRow>,
    },
    /// The alert as it is now.
    Alert {
        /// The alert.
        alert: Box<AlertRow>,
        /// The call has changed it.
        changed: bool,
    },
    /// There is none of this number.
    NoSuchAlert,
}
