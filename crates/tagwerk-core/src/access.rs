//! What the holder of an API token may do: which calls, and with which jobs.
//!
//! Guarantees: no scope contains another; a token without patterns reaches everything; nothing is lowered silently, what is
//! out of reach is refused.

use crate::Priority;

/// A group of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Make jobs; cancel jobs that never started.
    Enqueue,
    /// Claim and report.
    Work,
    /// Lists, jobs, figures.
    Read,
    /// See payloads, results, checkpoints and error texts.
    Payload,
    /// Decide about jobs, queues and limits.
    Operate,
    /// Settings of types, erasing.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Enqueue, Self::Work, Self::Read, Self::Payload, Self::Operate, Self::Admin];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Work => "work",
            Self::Read => "read",
            Self::Payload => "payload",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// The scope of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// Names of queues or types: exact, or with `*` for any run of characters. Without patterns: all.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Patterns(Option<Vec<String>>);

impl Patterns {
    /// Every name.
    pub const ALL: Self = Self(None);

    /// Names that fit one of these.
    #[must_use]
    pub const fn any_of(patterns: Vec<String>) -> Self {
        Self(Some(patterns))
    }

    /// The patterns; `None`: every name fits.
    #[must_use]
    pub fn list(&self) -> Option<&[String]> {
        self.0.as_deref()
    }

    /// Whether every name fits.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this name fits.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, name)))
    }

    /// The names that fit, if the patterns say them all: none of them has a `*`.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        self.list().filter(|patterns| patterns.iter().all(|pattern| !pattern.contains('*')))
    }
}

/// Whether a name fits a pattern. The parts between the stars are looked for one after the other, so it takes no longer than
/// name times pattern.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return name.ends_with(part);
        }
        let Some(at) = name.find(part) else { return false };
        name = name.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// The jobs that a token reaches.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Reach {
    /// In these queues.
    pub queues: Patterns,
    /// Of these types.
    pub types: Patterns,
    /// New jobs up to this priority.
    pub ceiling: Option<Priority>,
    /// In this space only, and new jobs are made in it. `None`: in all spaces, and new jobs are in none.
    pub space: Option<String>,
}

/// Why a new job is out of reach.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfReach {
    /// Its queue is.
    #[error("the token may not use queue {0}")]
    Queue(String),
    /// Its type is.
    #[error("the token may not use type {0:?}")]
    Type(String),
    /// Its priority is above the token's ceiling.
    #[error("priority {asked} is above {ceiling}, the most that the token may give")]
    Priority {
        /// What the job asks for.
        asked: u8,
        /// What the token may give.
        ceiling: u8,
    },
}

impl Reach {
    /// Whether it reaches jobs of every queue, type and space.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.queues.is_all() && self.types.is_all() && self.space.is_none()
    }

    /// Whether it reaches jobs of this queue and type in this space.
    #[must_use]
    pub fn covers(&self, (queue, kind): (&str, &str), space: Option<&str>) -> bool {
        let is_here = self.space.as_deref().is_none_or(|own| space == Some(own));
        is_here && self.queues.fits(queue) && self.types.fits(kind)
    }

    /// Whether a job like this may be made.
    pub fn admits(&self, (queue, kind): (&str, &str), priority: Priority) -> Result<(), OutOfReach> {
        if !self.types.fits(kind) {
            return Err(OutOfReach::Type(kind.to_owned()));
        }
        if !self.queues.fits(queue) {
            return Err(OutOfReach::Queue(queue.to_owned()));
        }
        match self.ceiling {
            Some(ceiling) if priority > ceiling => {
                Err(OutOfReach::Priority { asked: priority.value(), ceiling: ceiling.value() })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run() {
        for (pattern, names, others) in [
            ("a", &["a"][..], &["", "aa", "A"][..]),
            ("*", &["", "a", "App\\Jobs\\Send"], &[]),
            ("mail-*", &["mail-", "mail-x"], &["mail", "xmail-x"]),
            ("*-mail", &["-mail", "x-mail", "-mail-mail"], &["mail", "-mailx"]),
            ("a*b*c", &["abc", "aXbYc", "abbcc"], &["ac", "acb", "ab", "abcx"]),
            ("a**c", &["ac", "abc"], &["a", "c"]),
            ("ab*ba", &["abba", "abXba"], &["aba", "ab"]),
            ("*ß*", &["ß", "aßb"], &["s"]),
        ] {
            for name in names {
                assert!(fits(pattern, name), "{pattern} {name}");
            }
            for name in others {
                assert!(!fits(pattern, name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn a_job_out_of_reach_says_why() {
        let reach = Reach {
            queues: Patterns::any_of(vec!["mail".into()]),
            types: Patterns::any_of(vec!["send-*".into()]),
            ceiling: Some(Priority::DEFAULT),
            space: None,
        };
        let of = |queue, kind, value| reach.admits((queue, kind), Priority::from_value(value).unwrap());
        assert_eq!(of("mail", "send-x", 10), Ok(()));
        assert_eq!(of("other", "send-x", 10), Err(OutOfReach::Queue("other".into())));
        assert_eq!(of("mail", "x", 10), Err(OutOfReach::Type("x".into())));
        assert_eq!(of("mail", "send-x", 11), Err(OutOfReach::Priority { asked: 11, ceiling: 10 }));
        assert_eq!(Reach::default().admits(("any", "any"), Priority::from_value(100).unwrap()), Ok(()));
    }

    #[test]
    fn a_space_is_reached_from_within_and_from_above() {
        let of = |space: Option<&str>| Reach { space: space.map(str::to_owned), ..Reach::default() };
        for (own, other, covers) in [
            (Some("a"), Some("a"), true),
            (Some("a"), Some("b"), false),
            (Some("a"), None, false),
            (None, Some("a"), true),
            (None, None, true),
        ] {
            assert_eq!(of(own).covers(("q", "t"), other), covers, "{own:?} {other:?}");
            assert_eq!(of(own).is_everything(), own.is_none());
        }
    }

    #[test]
    fn only_plain_names_say_all() {
        assert_eq!(Patterns::ALL.names(), None);
        assert_eq!(Patterns::any_of(vec!["a".into(), "b*".into()]).names(), None);
        assert_eq!(Patterns::any_of(vec!["a".into()]).names(), Some(&["a".to_owned()][..]));
        assert!(!Patterns::any_of(vec![]).fits("a"));
    }

    #[test]
    fn scopes_have_names_of_their_own() {
        for scope in Scope::ALL {
            assert_eq!(Scope::from_name(scope.name()), Some(scope));
        }
        assert_eq!(Scope::from_name("everything"), None);
    }
}
