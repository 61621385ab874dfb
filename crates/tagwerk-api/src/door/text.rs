//! What texts must look like.

use crate::problem::FieldCode;

/// Which characters may stand in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Anything.
    Any,
    /// Anything but NUL, which not every store can keep.
    NoNul,
    /// What shows, and not spaces alone: in a list or a log anything else would lie about what it is.
    Printable,
    /// As printable, without `/`, which divides worker from token.
    Worker,
    /// `[A-Za-z0-9][A-Za-z0-9._-]*`
    Name,
    /// `[a-z0-9._-]*`
    Lower,
}

/// The characters of [`is_hidden`] as they stand in a class of a regular expression.
macro_rules! hidden {
    () => {
        r"\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    };
}

/// A limit as jobs name it, with an optional partition of at most so many characters.
pub(crate) fn limit_pattern(name_max: usize, partition_max: usize) -> String {
    let (seen, printable) = (concat!(r"[^\s", hidden!(), "]"), concat!("[^", hidden!(), "]"));
    let longer = name_max.saturating_sub(1);
    format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{longer}}}(:(?=.*{seen}){printable}{{1,{partition_max}}})?$")
}

impl Alphabet {
    /// The same rule as a regular expression of JSON Schema, for the document. `None` if there is nothing to say.
    pub(crate) const fn pattern(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::NoNul => Some(r"^[^\u0000]*$"),
            Self::Printable => Some(concat!("^[^", hidden!(), r"]*[^\s", hidden!(), "][^", hidden!(), "]*$")),
            Self::Worker => Some(concat!("^[^/", hidden!(), r"]*[^/\s", hidden!(), "][^/", hidden!(), "]*$")),
            Self::Name => Some("^[A-Za-z0-9][A-Za-z0-9._-]*$"),
            Self::Lower => Some("^[a-z0-9._-]*$"),
        }
    }
}

/// A rule for a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextRule {
    pub(crate) alphabet: Alphabet,
    pub(crate) max_bytes: usize,
}

impl TextRule {
    /// Whatever was sent; it is only ever compared.
    pub(crate) const ANY: Self = Self { alphabet: Alphabet::Any, max_bytes: usize::MAX };

    pub(crate) const fn new(alphabet: Alphabet, max_bytes: usize) -> Self {
        Self { alphabet, max_bytes }
    }

    /// What is wrong with the text, and what would be right.
    pub(crate) fn check(self, text: &str) -> Result<(), (FieldCode, String)> {
        if self.alphabet == Alphabet::Any {
            return Ok(());
        }
        let blank = matches!(self.alphabet, Alphabet::Printable | Alphabet::Worker) && text.trim().is_empty();
        if text.is_empty() || blank {
            return Err((FieldCode::Empty, "must not be empty".to_owned()));
        }
        if text.len() > self.max_bytes {
            let (bytes, max) = (text.len(), self.max_bytes);
            return Err((FieldCode::TooLong, format!("has {bytes} bytes; at most {max} are allowed")));
        }
        self.check_characters(text)
    }

    fn check_characters(self, text: &str) -> Result<(), (FieldCode, String)> {
        let bad = match self.alphabet {
            Alphabet::Any => None,
            Alphabet::NoNul => text.chars().find(|c| *c == '\0'),
            Alphabet::Printable => text.chars().find(|c| is_hidden(*c)),
            Alphabet::Worker => text.chars().find(|c| is_hidden(*c) || *c == '/'),
            Alphabet::Name if is_name(text) => None,
            Alphabet::Lower if text.bytes().all(is_lower) => None,
            Alphabet::Lower => {
                let message = "must consist of lower-case letters, digits, dots, hyphens and underscores";
                return Err((FieldCode::BadName, message.to_owned()));
            }
            Alphabet::Name => {
                let message = "must consist of letters, digits, dots, hyphens and underscores, and begin with a letter \
                               or digit";
                return Err((FieldCode::BadName, message.to_owned()));
            }
        };
        match bad {
            Some(c) => Err((FieldCode::BadCharacter, format!("must not contain the character {c:?}"))),
            None => Ok(()),
        }
    }
}

const fn is_lower(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-')
}

/// Control characters, and those that break a line or turn its direction.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(alphabet: Alphabet, text: &str) -> Option<FieldCode> {
        TextRule::new(alphabet, 8).check(text).err().map(|(code, _)| code)
    }

    #[test]
    fn lengths_are_counted_in_bytes() {
        for alphabet in [Alphabet::NoNul, Alphabet::Printable, Alphabet::Worker, Alphabet::Name] {
            assert_eq!(code(alphabet, "12345678"), None);
            assert_eq!(code(alphabet, "123456789"), Some(FieldCode::TooLong));
            assert_eq!(code(alphabet, ""), Some(FieldCode::Empty));
        }
        assert_eq!(code(Alphabet::NoNul, "üüüü"), None);
        assert_eq!(code(Alphabet::NoNul, "üüüüü"), Some(FieldCode::TooLong));
        assert_eq!(TextRule::ANY.check(""), Ok(()));
    }

    #[test]
    fn alphabets() {
        use Alphabet::{NoNul, Printable, Worker};
        for (alphabet, text, expected) in [
            (NoNul, "a\0b", Some(FieldCode::BadCharacter)),
            (NoNul, "a\nb", None),
            (NoNul, " ", None),
            (Printable, "a\0b", Some(FieldCode::BadCharacter)),
            (Printable, "a\nb", Some(FieldCode::BadCharacter)),
            (Printable, "a\u{202E}b", Some(FieldCode::BadCharacter)),
            (Printable, "\u{FEFF}b", Some(FieldCode::BadCharacter)),
            (Printable, "A\\B::c/d", None),
            (Printable, "  ", Some(FieldCode::Empty)),
            (Worker, "host:1", None),
            (Worker, "a/b", Some(FieldCode::BadCharacter)),
        ] {
            assert_eq!(code(alphabet, text), expected, "{alphabet:?} {text:?}");
        }
        for (text, expected) in [
            ("a", None),
            ("0.a_b-C", None),
            (".a", Some(FieldCode::BadName)),
            ("-a", Some(FieldCode::BadName)),
            ("a b", Some(FieldCode::BadName)),
            ("a/b", Some(FieldCode::BadName)),
            ("ü", Some(FieldCode::BadName)),
            ("a\0", Some(FieldCode::BadName)),
        ] {
            assert_eq!(code(Alphabet::Name, text), expected, "{text:?}");
        }
    }

    #[test]
    fn patterns_say_the_same_as_the_check() {
        // No engine of regular expressions here: the class is read as what it is, ranges of code points.
        let listed = |class: &str| {
            let code = |text: &str| u32::from_str_radix(text.trim_start_matches("\\u"), 16).unwrap();
            let pieces = class.split("\\u").filter(|piece| !piece.is_empty()).collect::<Vec<_>>();
            let mut ranges: Vec<(u32, u32)> = Vec::new();
            let mut open = false;
            for piece in pieces {
                let value = code(piece.trim_end_matches('-'));
                if open {
                    ranges.last_mut().unwrap().1 = value;
                } else {
                    ranges.push((value, value));
                }
                open = piece.ends_with('-');
            }
            ranges
        };
        let ranges = listed(hidden!());
        for c in '\0'..=char::MAX {
            let in_class = ranges.iter().any(|(from, to)| (*from..=*to).contains(&u32::from(c)));
            assert_eq!(in_class, is_hidden(c), "{c:?}");
        }
        assert_eq!(Alphabet::Any.pattern(), None);
        assert_eq!(Alphabet::NoNul.pattern(), Some(r"^[^\u0000]*$"));
        let printable = Alphabet::Printable.pattern().unwrap();
        assert!(printable.starts_with(r"^[^\u0000-\u001f") && printable.contains(r"][^"), "{printable}");
    }
}
