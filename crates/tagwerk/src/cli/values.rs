//! Arguments: how their text becomes a value.

use std::io::Read;
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tagwerk_client::api::request::{Priority, RateSettings, Subject};
use tagwerk_client::api::{Json, PriorityLabel, Seconds, Time, parse_rfc3339};
use tagwerk_core::limits;

use super::failure::Failure;
use crate::config::duration_ms;

/// A length of time: `90s`, `5m`, `2h`, `7d`, or a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Seconds, String> {
    duration_ms(text).map(Seconds::from_ms)
}

/// An instant with its zone.
pub(crate) fn time(text: &str) -> Result<Time, String> {
    parse_rfc3339(text).map(Time::from_ms).map_err(|error| error.to_string())
}

/// `COUNT/TIME`: so many within so long.
pub(crate) fn rate(text: &str) -> Result<RateSettings, String> {
    let told = || "must be COUNT/TIME, such as 20/1s or 600/1m".to_owned();
    let (count, per) = text.split_once('/').ok_or_else(told)?;
    let count = count.parse().map_err(|_| told())?;
    Ok(RateSettings { count, per_seconds: seconds(per)?, spread: None })
}

/// A level or a number.
pub(crate) fn priority(text: &str) -> Result<Priority, String> {
    let number =
        || text.parse().ok().filter(|number| *number <= tagwerk_core::Priority::MAX).map(Priority::Number);
    PriorityLabel::from_name(text).map(Priority::Label).or_else(number).ok_or_else(|| {
        format!("must be one of {} or a number from 0 to 100", PriorityLabel::NAMES.join(", "))
    })
}

/// `KIND:ID`
pub(crate) fn subject(text: &str) -> Result<Subject, String> {
    match text.split_once(':') {
        Some((kind, id)) if !kind.is_empty() && !id.is_empty() => {
            Ok(Subject { kind: kind.to_owned(), id: id.to_owned(), version: None })
        }
        _ => Err("must be KIND:ID, such as order:4711".to_owned()),
    }
}

/// One of a closed list of names.
pub(crate) fn named<T: Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
    read: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(move |name| read(&name).ok_or("no such name"))
}

/// JSON as an argument gives it: the text itself, `@FILE`, or `-` for stdin. Kept byte for byte.
pub(crate) fn json(flag: &str, text: &str) -> Result<Json, Failure> {
    let (content, place) = match text.strip_prefix('@') {
        Some(path) => (read(std::fs::File::open(path), path)?, format!("the file {path}")),
        None if text == "-" => (read(Ok(std::io::stdin()), "stdin")?, "stdin".to_owned()),
        None => (text.to_owned(), flag.to_owned()),
    };
    Json::from_text(content).map_err(|error| {
        let advice = if place == flag {
            format!("quote it for the shell: {flag} '{{\"id\": 7}}'; or name a file: {flag} @FILE")
        } else {
            String::new()
        };
        Failure::usage(format!("{place} is not JSON: {error}"), advice)
    })
}

/// Reads no more than a server would take.
fn read(source: std::io::Result<impl Read>, name: &str) -> Result<String, Failure> {
    let most = limits::BODY_MAX_BYTES;
    let mut text = Vec::new();
    source
        .and_then(|source| source.take(most as u64 + 1).read_to_end(&mut text))
        .map_err(|error| unreadable(Path::new(name), &error))?;
    if text.len() > most {
        return Err(Failure::usage(
            format!("{name} has more than {most} bytes"),
            "keep large data elsewhere and put a reference to it into the payload",
        ));
    }
    String::from_utf8(text)
        .map_err(|_| Failure::usage(format!("{name} is not UTF-8"), "convert it, for example with iconv"))
}

/// A file that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", path.display()), "check the name and its permissions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_levels_or_numbers() {
        assert_eq!(priority("high"), Ok(Priority::Label(PriorityLabel::High)));
        assert_eq!(priority("100"), Ok(Priority::Number(100)));
        for text in ["101", "-1", "High", "", "1.5"] {
            assert!(priority(text).is_err(), "{text}");
        }
    }

    #[test]
    fn subjects_have_a_kind_and_an_id() {
        assert_eq!(subject("order:a:b").unwrap().id, "a:b");
        for text in ["order", "order:", ":7", ""] {
            assert!(subject(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_a_count_and_a_length() {
        let read = |text| rate(text).map(|rate| (rate.count, rate.per_seconds.ms()));
        assert_eq!(read("20/1s"), Ok((20, 1_000)));
        assert_eq!(read("600/1m"), Ok((600, 60_000)));
        assert_eq!(read("5/0.5"), Ok((5, 500)));
        for text in ["20", "/1s", "20/", "-1/1s", "x/1s", "1.5/1s", "20/x"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_need_a_zone() {
        assert!(time("2026-07-01T12:00:00").unwrap_err().contains("zone"));
        assert_eq!(time("2026-07-01T12:00:00Z"), Ok(Time::from_ms(1_782_907_200_000)));
    }
}
