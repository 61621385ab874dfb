//! Takes secrets out of error texts before they are kept: bearer tokens, passwords, URLs with credentials, keys in PEM,
//! card numbers. The patterns run in linear time, whatever the text.
//!
//! This is a net, not a wall: what does not look like a secret is kept. Workers should not put any into their errors.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use tagwerk_core::limits;

/// Stands where a secret was.
const MARK: &str = "[redacted]";
/// Of a longer text nothing beyond this is looked at or kept; the limit for what is kept is far below.
const LOOKED_AT_BYTES: usize = 16 * limits::ERROR_MAX_BYTES;

/// A kind of secret.
struct Pattern {
    regex: Regex,
    /// What to put in its place; `None` for card numbers, which are judged one by one.
    instead: Option<&'static str>,
}

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let patterns = [
        // A whole block, or what a cut has left of it.
        (
            r"(?s)-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE)[A-Z ]{0,20}-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\z)",
            Some(MARK),
        ),
        // scheme://user:password@host
        (r"([A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/?#@:]*:[^\s/?#@]*(?:@[^\s/?#@]*)*@", Some("$1[redacted]@")),
        // Authorization: Bearer …, Basic …
        (r"(?i)\b(bearer|basic|token)(\s+)[A-Za-z0-9._~+/=-]{8,}", Some("$1$2[redacted]")),
        // Our own tokens, and those of well-known services.
        (
            r"\b(?:tw_|sk_live_|sk_test_|ghp_|gho_|github_pat_|xox[abprs]-|AKIA|eyJ[A-Za-z0-9_-]{10,}\.)[A-Za-z0-9_.-]{8,}",
            Some(MARK),
        ),
        // "password": "…" in JSON, quoted or escaped once more
        (
            r#"(?i)((?:\\?["'])[\w.-]*(?:passw(?:or)?d|passwd|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|token|authorization)[\w.-]*\\?["']\s*[:=]>?\s*\\?["'])(?:[^"'\\]|\\[^"'])*"#,
            Some("${1}[redacted]"),
        ),
        // password=…, api_key: …
        (
            r#"(?i)(\b[\w.-]*(?:passw(?:or)?d|passwd|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|token)[\w.-]*\s*[:=]\s*)(?:"[^"]*"|'[^']*'|[^\s"'&,;)}\]]+)"#,
            Some("${1}[redacted]"),
        ),
        // 13 to 19 digits, perhaps in groups
        (r"\b[0-9](?:[ -]?[0-9]){12,18}\b", None),
    ];
    let compiled = |(pattern, instead)| Regex::new(pattern).ok().map(|regex| Pattern { regex, instead });
    patterns.into_iter().filter_map(compiled).collect()
});

/// The text without what looks like a secret.
pub(crate) fn redact(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(head(text));
    for Pattern { regex, instead } in PATTERNS.iter() {
        let replaced = match instead {
            Some(instead) => regex.replace_all(&text, *instead),
            None => regex.replace_all(&text, card),
        };
        if let Cow::Owned(replaced) = replaced {
            text = Cow::Owned(replaced);
        }
    }
    text
}

/// As much of a text as is looked at, ending between two words, so that no half of a secret is left.
fn head(text: &str) -> &str {
    if text.len() <= LOOKED_AT_BYTES {
        return text;
    }
    let cut = &text[..text.floor_char_boundary(LOOKED_AT_BYTES)];
    cut.rfind(char::is_whitespace).map_or(cut, |end| &cut[..end])
}

/// Only what can be the number of a card: other numbers are ids that somebody needs.
fn card(found: &Captures<'_>) -> String {
    let digits: Vec<u32> = found[0].chars().filter_map(|letter| letter.to_digit(10)).collect();
    // No card begins otherwise; times in milliseconds and most ids do.
    let begins_like_one = matches!((digits.first(), digits.len()), (Some(3..=6), _) | (Some(2), 16));
    if begins_like_one && passes_luhn(&digits) { MARK.to_owned() } else { found[0].to_owned() }
}

/// The check digit that every card number has.
fn passes_luhn(digits: &[u32]) -> bool {
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| if place % 2 == 1 { doubled(*digit) } else { *digit })
        .sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_compile() {
        assert_eq!(PATTERNS.len(), 7);
    }

    #[test]
    fn secrets_are_taken_out() {
        for (text, kept) in [
            ("401 for Authorization: Bearer abcDEF123.xyz-_", "401 for Authorization: Bearer [redacted]"),
            ("auth basic dXNlcjpwYXNz failed", "auth basic [redacted] failed"),
            (
                "connect postgres://app:s3cr%40t@db:5432/x: refused",
                "connect postgres://[redacted]@db:5432/x: refused",
            ),
            ("redis://:pa@ss@cache/0", "redis://[redacted]@cache/0"),
            ("login failed, password=hunter2&user=bob", "login failed, password=[redacted]&user=bob"),
            ("DB_PASSWORD: \"a b c\", host x", "DB_PASSWORD: [redacted], host x"),
            (r#"{"user":"bob","password":"a\nb","n":1}"#, r#"{"user":"bob","password":"[redacted]","n":1}"#),
            (r#"{\"client_secret\":\"abc\"}"#, r#"{\"client_secret\":\"[redacted]\"}"#),
            ("['api_key' => 'k-123']", "['api_key' => '[redacted]']"),
            ("key tw_0123456789abcdef rejected", "key [redacted] rejected"),
            ("card 4111 1111 1111 1111 declined", "card [redacted] declined"),
            ("card 5500-0000-0000-0004.", "card [redacted]."),
        ] {
            assert_eq!(redact(text), kept);
        }
    }

    #[test]
    fn a_key_in_pem_goes_whole_even_if_its_end_is_missing() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nAAAA\n-----END RSA PRIVATE KEY-----";
        assert_eq!(redact(&format!("bad key:\n{key}\nin file")), "bad key:\n[redacted]\nin file");
        assert_eq!(redact("-----BEGIN PRIVATE KEY-----\nMIIE\nAAAA"), "[redacted]");
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "TypeError: x is undefined at app.js:10:5",
            "order 1234567890123456 not found",
            "order 4111111111111112 not found",
            "GET http://example.org/a?b=c:d 500",
            "see https://example.org/@user/post",
            "the password was wrong",
            "Basic plan expired",
            "1700000000000 ms",
            "ünïcödé \u{1F980}",
            "",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn long_texts_are_looked_at_in_part_and_leave_no_half_secret() {
        let text = format!("{} password=geheim{}", "x".repeat(LOOKED_AT_BYTES - 20), "1".repeat(1000));
        let kept = redact(&text);
        assert!(kept.len() <= LOOKED_AT_BYTES);
        assert!(!kept.contains("geheim"));
        let endless = "-".repeat(4 * LOOKED_AT_BYTES);
        assert_eq!(redact(&endless).len(), LOOKED_AT_BYTES);
    }
}
