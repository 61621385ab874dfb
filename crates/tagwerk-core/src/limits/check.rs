//! The functions that apply the limits to what comes from outside.

use std::borrow::Cow;

use super::{
    KEY_MAX_BYTES, NAME_MAX_BYTES, REQUEST_ID_MAX_BYTES, RETRY_FACTOR_MAX, RETRY_FACTOR_MIN, TYPE_MAX_BYTES,
    WORKER_ID_MAX_BYTES,
};

/// Why a value is refused. The message says what would be accepted; the caller knows the field.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LimitError {
    /// Nothing was given.
    #[error("must not be empty")]
    Empty,
    /// Too long.
    #[error("has {bytes} bytes; at most {max_bytes} are allowed")]
    TooLong {
        /// Length in bytes of UTF-8.
        bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// Not the name of a queue, limit or schedule.
    #[error(
        "must be 1 to {NAME_MAX_BYTES} letters, digits, dots, hyphens and underscores, beginning with a letter or digit"
    )]
    NotAName,
    /// A character that cannot be seen.
    #[error("contains the character {character:?}, which cannot be printed")]
    Unprintable {
        /// The first of them.
        character: char,
    },
    /// A character that has a meaning of its own there.
    #[error("must not contain {character:?}")]
    Forbidden {
        /// The character.
        character: char,
    },
    /// Outside of its range.
    #[error("must be between {min} and {max}, not {got}")]
    OutOfRange {
        /// Smallest value allowed.
        min: i64,
        /// Largest value allowed.
        max: i64,
        /// The value that was given.
        got: i64,
    },
    /// Growth of the back-off outside of its range.
    #[error("must be between {RETRY_FACTOR_MIN} and {RETRY_FACTOR_MAX}, not {got}")]
    FactorOutOfRange {
        /// The value that was given.
        got: f64,
    },
}

/// Smallest and largest value allowed, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<T> {
    /// Smallest value.
    pub min: T,
    /// Largest value.
    pub max: T,
}

impl<T: Copy + Into<i64> + TryFrom<i64>> Range<T> {
    /// The value as the type in which it is kept, if it lies in the range.
    pub fn check(self, value: i64) -> Result<T, LimitError> {
        let (min, max) = (self.min.into(), self.max.into());
        T::try_from(value).ok().filter(|_| (min..=max).contains(&value)).ok_or(LimitError::OutOfRange {
            min,
            max,
            got: value,
        })
    }
}

/// Name of a queue, limit or schedule: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
pub fn name(text: &str) -> Result<(), LimitError> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let bytes = text.as_bytes();
    let is_name = bytes.len() <= NAME_MAX_BYTES
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().copied().all(is_inner);
    if is_name { Ok(()) } else { Err(LimitError::NotAName) }
}

/// Type of a job: any printable text of 1 to 255 bytes.
pub fn job_type(text: &str) -> Result<(), LimitError> {
    length(text, TYPE_MAX_BYTES)?;
    printable(text)
}

/// Idempotency, ordering or fair key, subject or correlation id: 1 to 255 bytes.
pub fn key(text: &str) -> Result<(), LimitError> {
    length(text, KEY_MAX_BYTES)?;
    // `PostgreSQL` cannot keep it in a text, and both stores must accept the same keys.
    forbid(text, '\0')
}

/// `worker_id`: printable, 1 to 255 bytes, without `/`, which divides it from the name of the token.
pub fn worker_id(text: &str) -> Result<(), LimitError> {
    length(text, WORKER_ID_MAX_BYTES)?;
    forbid(text, '/')?;
    printable(text)
}

/// `request_id` of a claim: 1 to 64 bytes.
pub fn request_id(text: &str) -> Result<(), LimitError> {
    length(text, REQUEST_ID_MAX_BYTES)?;
    forbid(text, '\0')
}

/// Growth of the back-off.
pub fn retry_factor(got: f64) -> Result<f64, LimitError> {
    if (RETRY_FACTOR_MIN..=RETRY_FACTOR_MAX).contains(&got) {
        Ok(got)
    } else {
        Err(LimitError::FactorOutOfRange { got })
    }
}

/// Text of at most `max_bytes`: longer text is cut between two characters, and its end says so and how long it was.
#[must_use]
pub fn cut_text(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let note = format!(" … [cut, was {} bytes]", text.len());
    match max_bytes.checked_sub(note.len()) {
        Some(room) => Cow::Owned(format!("{}{note}", head(text, room))),
        None => Cow::Borrowed(head(text, max_bytes)),
    }
}

/// As many whole characters from the start as fit into `max_bytes`.
fn head(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

fn length(text: &str, max_bytes: usize) -> Result<(), LimitError> {
    if text.is_empty() {
        Err(LimitError::Empty)
    } else if text.len() > max_bytes {
        Err(LimitError::TooLong { bytes: text.len(), max_bytes })
    } else {
        Ok(())
    }
}

fn forbid(text: &str, character: char) -> Result<(), LimitError> {
    if text.contains(character) { Err(LimitError::Forbidden { character }) } else { Ok(()) }
}

/// No control characters, and none that break a line or turn its direction: in a list or a log such a text would lie
/// about what it is. Spaces alone say nothing and count as empty.
fn printable(text: &str) -> Result<(), LimitError> {
    if text.trim().is_empty() {
        return Err(LimitError::Empty);
    }
    let is_hidden = |character: &char| {
        character.is_control()
            || matches!(
                character,
                '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
            )
    };
    match text.chars().find(is_hidden) {
        Some(character) => Err(LimitError::Unprintable { character }),
        None => Ok(()),
    }
}
