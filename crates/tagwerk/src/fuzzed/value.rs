//! Single values: times, lengths of time, priorities, factors. The first line says which, the rest is the value as it
//! would stand in a body.
//!
//! Holds: times mean what another library says they mean; a plain decimal is exact to the millisecond and rounded half
//! away from zero; whatever is accepted is written and read as the same.

use tagwerk_api::door::{Door, NewJob};
use tagwerk_api::{PriorityLabel, format_rfc3339, parse_rfc3339};

use super::{first_line, limits};

/// The property.
pub(crate) fn value(data: &[u8]) {
    let Some((kind, rest)) = first_line(data) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind {
        "time" => time(text),
        "seconds" => seconds(text),
        "priority" => priority(text),
        "factor" => factor(text),
        _ => {}
    }
}

fn factor(text: &str) {
    let read =
        |text: &str| enqueue("retry", &format!("{{\"factor\":{text}}}")).and_then(|job| job.retry.factor);
    let Some(factor) = read(text) else { return };
    // The other reader may miss the nearest number by one step.
    let other: f64 = serde_json::from_str(text).unwrap();
    assert!((factor - other).abs() <= factor * f64::EPSILON, "{text}: {factor} and {other}");
    assert_eq!(read(&factor.to_string()), Some(factor), "{text}");
}

/// The job with this one field.
fn enqueue(field: &str, value: &str) -> Option<NewJob> {
    let body = format!("{{\"type\":\"t\",\"{field}\":{value}}}");
    Door::new(limits()).enqueue(body.as_bytes(), None).ok()
}

fn time(text: &str) {
    let Ok(ms) = parse_rfc3339(text) else { return };
    let shown = format_rfc3339(ms);
    assert_eq!(shown.len(), 24, "{shown}");
    assert_eq!(parse_rfc3339(&shown), Ok(ms), "{shown}");
    // A leap second is the first second of the next minute with us, and the last of this one with the other library,
    // whose instants end a day before the year 9999 does.
    let last = jiff::Timestamp::MAX.as_millisecond();
    if text.get(17..19) != Some("60") && ms <= last {
        let other: jiff::Timestamp = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        // Digits beyond milliseconds are cut off, before 1970 too.
        let floor = other.as_nanosecond().div_euclid(1_000_000);
        assert_eq!(floor, i128::from(ms), "{text}");
    }
    let job = enqueue("run_at", &format!("\"{text}\""));
    assert_eq!(job.and_then(|job| job.run_at_ms), Some(ms), "{text}");
}

fn seconds(text: &str) {
    let Some(ms) = enqueue("delay_seconds", text).and_then(|job| job.delay_ms) else { return };
    let mantissa = text.trim().split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.contains(|digit: char| matches!(digit, '1'..='9'));
    assert!(is_zero || !mantissa.starts_with('-'), "{text}: rounding must not bring it into the range");
    if let Some(expected) = by_hand(text) {
        assert_eq!(i128::from(ms), expected, "{text}");
    }
    let again = tagwerk_api::Seconds::from_ms(ms);
    let written = serde_json::to_string(&again).unwrap();
    assert_eq!(enqueue("delay_seconds", &written).and_then(|job| job.delay_ms), Some(ms), "{written}");
    assert_eq!(serde_json::from_str::<tagwerk_api::Seconds>(&written).unwrap(), again);
}

/// Milliseconds of a plain decimal of up to 15 digits before and after the point.
fn by_hand(text: &str) -> Option<i128> {
    let (sign, digits) = text.trim().strip_prefix('-').map_or((1, text.trim()), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.len() <= 15 && part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(fraction) {
        return None;
    }
    let padded: i128 = format!("{whole}{fraction:0<15}").parse().ok()?;
    let unit = 1_000_000_000_000;
    Some(sign * ((padded + unit / 2) / unit))
}

fn priority(text: &str) {
    let Some(priority) = enqueue("priority", text).map(|job| job.priority) else { return };
    let Some(priority) = priority else {
        assert_eq!(text.trim(), "null");
        return;
    };
    assert!(priority <= 100);
    if let Ok(name) = serde_json::from_str::<String>(text) {
        assert_eq!(PriorityLabel::from_name(&name).map(PriorityLabel::value), Some(priority));
    }
    assert_eq!(enqueue("priority", &priority.to_string()).and_then(|job| job.priority), Some(priority));
}
