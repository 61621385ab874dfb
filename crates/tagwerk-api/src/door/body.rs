//! What stands before the fields: media type, encoding, headers, ids in paths.

use crate::headers::{JSON, NDJSON};
use crate::problem::{Code, FieldCode, Refusal};

/// The body as text. Empty (or white space alone) counts as `{}`.
pub(crate) fn text(body: &[u8]) -> Result<&str, Refusal> {
    if let Some(refusal) = byte_order_mark("body", body) {
        return Err(refusal);
    }
    let text = std::str::from_utf8(body).map_err(|error| not_utf8(body, error.valid_up_to()))?;
    Ok(if is_blank(text.as_bytes()) { "{}" } else { text })
}

/// A line of a stream as text.
pub(crate) fn line_text(line: &[u8]) -> Result<&str, Refusal> {
    if let Some(refusal) = byte_order_mark("line", line) {
        return Err(refusal);
    }
    std::str::from_utf8(line).map_err(|error| {
        let valid = error.valid_up_to();
        let detail = format!("the line is not UTF-8 at column {} (byte {valid}); send UTF-8", valid + 1);
        Refusal::new(Code::InvalidJson, detail)
    })
}

/// Whether there is nothing but JSON's white space.
pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

fn byte_order_mark(what: &str, bytes: &[u8]) -> Option<Refusal> {
    bytes.starts_with(b"\xEF\xBB\xBF").then(|| {
        let detail = format!("the {what} begins with a byte order mark (EF BB BF); send it without");
        Refusal::new(Code::InvalidJson, detail)
    })
}

fn not_utf8(body: &[u8], valid: usize) -> Refusal {
    let before = body.get(..valid).unwrap_or_default();
    let lines = before.split(|byte| *byte == b'\n');
    let column = lines.clone().next_back().map_or(0, <[u8]>::len) + 1;
    let line = lines.count();
    let detail = format!("the body is not UTF-8 at line {line} column {column} (byte {valid}); send UTF-8");
    Refusal::new(Code::InvalidJson, detail)
}

/// Whether a body may be read as JSON by its `Content-Type`. An empty body may have any or none.
pub fn check_content_type(header: Option<&[u8]>, body: &[u8]) -> Result<(), Refusal> {
    if body.is_empty() || header.is_some_and(is_json) {
        return Ok(());
    }
    let said = match header {
        None => "the request does not say".to_owned(),
        Some(header) => format!("it says {:?}", shown(&String::from_utf8_lossy(header))),
    };
    let detail = format!(
        "the body must be JSON and say so, but {said}; add the header Content-Type: application/json (curl: -H \
         'Content-Type: application/json')"
    );
    Err(Refusal::new(Code::UnsupportedMediaType, detail))
}

/// Whether a `Content-Type` says that the body is a stream of lines.
#[must_use]
pub fn is_ndjson(header: Option<&[u8]>) -> bool {
    header.is_some_and(|header| is_media(header, NDJSON))
}

/// `application/json`
fn is_json(header: &[u8]) -> bool {
    is_media(header, JSON)
}

/// This media type, with no character set or UTF-8.
fn is_media(header: &[u8], wanted: &str) -> bool {
    let Ok(header) = std::str::from_utf8(header) else { return false };
    let mut parts = header.split(';').map(|part| part.trim().to_ascii_lowercase());
    let is_it = parts.next().is_some_and(|media| media == wanted);
    let is_utf8 = |part: String| match part.strip_prefix("charset=") {
        Some(charset) => matches!(charset.trim_matches('"'), "utf-8" | "utf8" | "us-ascii"),
        None => true,
    };
    is_it && parts.all(is_utf8)
}

/// The version in an `If-Match` header: `7`, `"7"` or `W/"7"`.
pub fn parse_if_match(header: &[u8]) -> Result<i64, Refusal> {
    let malformed = || Refusal::new(Code::InvalidPrecondition, Code::InvalidPrecondition.advice());
    let text = std::str::from_utf8(header).map_err(|_| malformed())?.trim();
    let text = text.strip_prefix("W/").unwrap_or(text);
    let digits = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        digits.parse().map_err(|_| malformed())
    } else {
        Err(malformed())
    }
}

/// A job's id in a path. What is no positive whole number names no job.
pub fn parse_job_id(text: &str) -> Result<i64, Refusal> {
    let id = text.parse().ok().filter(|id| *id > 0 && text.bytes().all(|byte| byte.is_ascii_digit()));
    id.ok_or_else(|| {
        Refusal::new(
            Code::JobNotFound,
            format!("there is no job {:?}; ids are positive whole numbers", shown(text)),
        )
    })
}

/// The idempotency key of the header: as it stands, or as the quoted text of the IETF draft.
pub(crate) fn header_key(header: &[u8]) -> Result<&str, Refusal> {
    let Ok(text) = std::str::from_utf8(header) else {
        return Err(Refusal::field("Idempotency-Key", FieldCode::BadCharacter, "must be UTF-8"));
    };
    let text = text.trim();
    Ok(text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text))
}

/// A text from outside, cut so that it can stand in a message.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 64;
    let head: String = text.chars().take(LONGEST).collect();
    if head.len() < text.len() { head + "…" } else { head }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_are_no_text() {
        let detail = |body: &[u8]| text(body).unwrap_err().detail;
        assert_eq!(
            detail(b"\xEF\xBB\xBF{}"),
            "the body begins with a byte order mark (EF BB BF); send it without"
        );
        assert_eq!(
            detail(b"{\n \"a\": \"\xFF\"}"),
            "the body is not UTF-8 at line 2 column 8 (byte 9); send UTF-8"
        );
        assert_eq!(detail(b"\xC0\xAF"), "the body is not UTF-8 at line 1 column 1 (byte 0); send UTF-8");
        assert_eq!(text(b"\xFF\xFE{\0}\0").unwrap_err().code, Code::InvalidJson);
        assert_eq!(text("\"\u{D7FF}\"".as_bytes()), Ok("\"\u{D7FF}\""));
        assert!(text(b"\"\xED\xA0\x80\"").is_err(), "an encoded half surrogate is not UTF-8");
    }

    #[test]
    fn an_empty_body_is_an_empty_object() {
        for body in [b"".as_slice(), b" \r\n\t"] {
            assert_eq!(text(body), Ok("{}"));
        }
    }

    #[test]
    fn media_types() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
        ] {
            assert_eq!(check_content_type(Some(good.as_bytes()), b"{}"), Ok(()), "{good}");
        }
        for bad in [
            Some("application/x-www-form-urlencoded"),
            Some("text/plain"),
            Some("application/json; charset=iso-8859-1"),
            Some("application/x-ndjson"),
            Some(""),
            None,
        ] {
            let refusal = check_content_type(bad.map(str::as_bytes), b"{}").unwrap_err();
            assert_eq!(refusal.code, Code::UnsupportedMediaType);
            assert!(refusal.detail.contains("-H 'Content-Type: application/json'"), "{}", refusal.detail);
            assert_eq!(check_content_type(bad.map(str::as_bytes), b""), Ok(()));
        }
    }

    #[test]
    fn streams_of_lines() {
        for good in ["application/x-ndjson", "Application/X-NDJSON", "application/x-ndjson; charset=utf-8"] {
            assert!(is_ndjson(Some(good.as_bytes())), "{good}");
        }
        for bad in [Some("application/json"), Some("application/x-ndjson; charset=utf-16"), Some(""), None] {
            assert!(!is_ndjson(bad.map(str::as_bytes)), "{bad:?}");
        }
    }

    #[test]
    fn if_match() {
        for good in ["7", "\"7\"", "W/\"7\"", " 7 "] {
            assert_eq!(parse_if_match(good.as_bytes()), Ok(7), "{good}");
        }
        for bad in ["", "*", "\"\"", "-7", "+7", "7.0", "\"7", "\"6\", \"7\"", "99999999999999999999", "x"] {
            assert_eq!(parse_if_match(bad.as_bytes()).unwrap_err().code, Code::InvalidPrecondition, "{bad}");
        }
        assert!(parse_if_match(b"\xFF").is_err());
    }

    #[test]
    fn ids_in_paths() {
        assert_eq!(parse_job_id("1"), Ok(1));
        assert_eq!(parse_job_id("9007199254740991"), Ok(9_007_199_254_740_991));
        for bad in ["", "0", "-1", "+1", "1.0", "x", "99999999999999999999", "1 ", "٣"] {
            assert_eq!(parse_job_id(bad).unwrap_err().code, Code::JobNotFound, "{bad}");
        }
    }

    #[test]
    fn keys_in_headers() {
        assert_eq!(header_key(b" k-1 "), Ok("k-1"));
        assert_eq!(header_key(b"\"k-1\""), Ok("k-1"));
        assert_eq!(header_key(b"\"k"), Ok("\"k"));
        assert_eq!(header_key(b"\xFF").unwrap_err().errors[0].field, "Idempotency-Key");
    }
}
