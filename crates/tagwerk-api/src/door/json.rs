//! JSON taken apart one level at a time. Values inside stay text, so nothing is lost and nothing recurses.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What kind of value a JSON text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    Text,
    Number,
    Bool,
    Null,
}

impl Kind {
    /// By the first byte, which decides it in valid JSON.
    pub(crate) fn of(json: &str) -> Self {
        match json.trim_start().bytes().next() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::Text,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }

    /// With its article, for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Text => "a text",
            Self::Number => "a number",
            Self::Bool => "true or false",
            Self::Null => "null",
        }
    }
}

/// More members than this no object of ours has; what lies beyond is counted, not kept.
pub(crate) const MEMBERS_MAX: usize = 200;

/// The members of an object in the order in which they stand, duplicates included.
#[derive(Debug, Default)]
pub(crate) struct Members<'a> {
    /// The first [`MEMBERS_MAX`].
    pub(crate) kept: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// How many there are.
    pub(crate) total: usize,
}

/// Borrows the key unless it has escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Members::default();
                while let Some((Key(name), value)) = map.next_entry()? {
                    members.total += 1;
                    if members.kept.len() < MEMBERS_MAX {
                        members.kept.push((name, value));
                    }
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// The elements of an array, as far as they are wanted.
#[derive(Debug)]
pub(crate) struct Elements<'a> {
    /// The first ones, at most as many as were wanted.
    pub(crate) kept: Vec<&'a RawValue>,
    /// How many there are.
    pub(crate) total: usize,
}

/// Takes an array apart, keeping at most `wanted` elements. `None` if it is no array.
pub(crate) fn elements(json: &RawValue, wanted: usize) -> Option<Elements<'_>> {
    struct Array(usize);

    impl<'de> Visitor<'de> for Array {
        type Value = Elements<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Elements<'de>, A::Error> {
            let mut elements = Elements { kept: Vec::new(), total: 0 };
            while let Some(element) = seq.next_element()? {
                elements.total += 1;
                if elements.kept.len() < self.0 {
                    elements.kept.push(element);
                }
            }
            Ok(elements)
        }
    }

    json.deserialize_seq(Array(wanted)).ok()
}

/// How deeply arrays and objects are nested: 0 for a bare value.
pub(crate) fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_text(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Moves behind the quotation mark that ends a text.
fn skip_text(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// A JSON text read, with half surrogate pairs replaced by U+FFFD.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unescaped<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Whether there were any.
    pub(crate) lone_surrogates: bool,
}

/// Reads a JSON text with its quotation marks. Valid JSON is assumed; anything else is read as far as it goes.
pub(crate) fn unescape(json: &str) -> Unescaped<'_> {
    let inner = json.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(json);
    if !inner.contains('\\') {
        return Unescaped { text: Cow::Borrowed(inner), lone_surrogates: false };
    }
    let mut text = String::with_capacity(inner.len());
    let mut lone_surrogates = false;
    let mut rest = inner;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        text.push_str(plain);
        let (character, tail) = escape(escaped);
        lone_surrogates |= character.is_none();
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = tail;
    }
    text.push_str(rest);
    Unescaped { text: Cow::Owned(text), lone_surrogates }
}

/// The character that an escape stands for (`None` for half a surrogate pair) and what follows it. The text begins
/// behind the backslash.
fn escape(text: &str) -> (Option<char>, &str) {
    let mut characters = text.chars();
    let character = match characters.next() {
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => return unicode_escape(characters.as_str()),
        Some(itself) => itself,
        None => char::REPLACEMENT_CHARACTER,
    };
    (Some(character), characters.as_str())
}

/// The same for what follows `\u`.
fn unicode_escape(text: &str) -> (Option<char>, &str) {
    let Some((unit, tail)) = hex4(text) else { return (None, text) };
    if !(0xD800..0xDC00).contains(&unit) {
        return (char::from_u32(unit), tail);
    }
    let low = tail.strip_prefix("\\u").and_then(hex4).filter(|(low, _)| (0xDC00..0xE000).contains(low));
    match low {
        Some((low, tail)) => (char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)), tail),
        None => (None, tail),
    }
}

fn hex4(text: &str) -> Option<(u32, &str)> {
    let (digits, tail) = text.split_at_checked(4)?;
    u32::from_str_radix(digits, 16).ok().map(|unit| (unit, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_order_duplicates_and_bytes() {
        let members: Members =
            serde_json::from_str(r#" {"b": 1.0 ,"\u0061":[1, 2],"b":{"x":"}"}} "#).unwrap();
        let kept: Vec<_> = members.kept.iter().map(|(name, value)| (name.as_ref(), value.get())).collect();
        assert_eq!(kept, [("b", "1.0"), ("a", "[1, 2]"), ("b", r#"{"x":"}"}"#)]);
        assert_eq!(members.total, 3);
    }

    #[test]
    fn what_lies_beyond_is_counted_but_not_kept() {
        let body = format!("{{{}}}", vec![r#""a":1"#; 100_000].join(","));
        let members: Members = serde_json::from_str(&body).unwrap();
        assert_eq!((members.kept.len(), members.total), (MEMBERS_MAX, 100_000));
        let array: &RawValue = serde_json::from_str("[1,[2],3]").unwrap();
        let elements = elements(array, 2).unwrap();
        assert_eq!(
            (elements.kept.iter().map(|e| e.get()).collect::<Vec<_>>(), elements.total),
            (vec!["1", "[2]"], 3)
        );
    }

    #[test]
    fn depth_counts_brackets_outside_of_texts() {
        for (json, levels) in [
            ("1", 0),
            (r#""[[[""#, 0),
            (r#""\"[""#, 0),
            ("[]", 1),
            (r#"{"a":[{"b":"]"}],"c":[]}"#, 3),
            (r#"["\\",[]]"#, 2),
        ] {
            assert_eq!(depth(json), levels, "{json}");
        }
        assert_eq!(depth(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))), 100_000);
    }

    #[test]
    fn texts_are_read() {
        for (json, text, lone_surrogates) in [
            (r#""plain ü""#, "plain ü", false),
            (r#""a\n\t\"\\\/b""#, "a\n\t\"\\/b", false),
            (r#""\u00fc\u0000""#, "ü\0", false),
            (r#""\ud83d\ude00""#, "😀", false),
            (r#""\ud83d""#, "\u{fffd}", true),
            (r#""\ude00x""#, "\u{fffd}x", true),
            (r#""\ud83d\u0041""#, "\u{fffd}A", true),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀", true),
        ] {
            assert_eq!(unescape(json), Unescaped { text: text.into(), lone_surrogates }, "{json}");
        }
    }
}
