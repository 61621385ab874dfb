//! Jobs as JSON, with keys that can be written anew in place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::http;

/// Digits of a key.
const DIGITS: usize = 16;

/// A JSON document of exactly 150 bytes.
pub(super) fn payload() -> String {
    format!("{{\"order\":\"{}\"}}", "x".repeat(138))
}

/// Numbers that make keys differ, shared by all callers.
#[derive(Clone, Default)]
pub(super) struct Serial(Arc<AtomicU64>);

impl Serial {
    /// Numbers that begin somewhere of their own, so that two drivers of a run do not share keys.
    pub(super) fn beginning_at(start: u64) -> Self {
        Self(Arc::new(AtomicU64::new(start)))
    }

    /// The next number.
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A job as JSON, with a key or without; with a delay unless that is zero.
fn job(with_key: Keyed, delay_seconds: u64) -> String {
    let key = match with_key {
        Keyed::Yes => format!(",\"idempotency_key\":\"{}\"", "0".repeat(DIGITS)),
        Keyed::No => String::new(),
    };
    let delay =
        if delay_seconds == 0 { String::new() } else { format!(",\"delay_seconds\":{delay_seconds}") };
    format!("{{\"type\":\"noop\",\"payload\":{}{key}{delay}}}", payload())
}

#[derive(Clone, Copy)]
enum Keyed {
    Yes,
    No,
}

/// Writes a number where the key's digits are.
fn write_key(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

/// Where the digits of each key are.
fn places(text: &[u8]) -> Vec<usize> {
    let digits = [b'0'; DIGITS];
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].windows(DIGITS).position(|window| window == digits) {
        places.push(at + found);
        at += found + DIGITS;
    }
    places
}

/// Requests with one job each: every second one has a key of its own.
pub(super) struct Single {
    with_key: Vec<u8>,
    place: usize,
    plain: Vec<u8>,
    serial: Serial,
    turn: bool,
}

impl Single {
    pub(super) fn new(serial: Serial) -> Self {
        let request = |body: String| http::request("POST", "/jobs", "application/json", body.as_bytes());
        let with_key = request(job(Keyed::Yes, 0));
        let place = places(&with_key).pop().unwrap_or_default();
        Self { with_key, place, plain: request(job(Keyed::No, 0)), serial, turn: false }
    }

    /// The next request.
    pub(super) fn next(&mut self) -> &[u8] {
        self.turn = !self.turn;
        if self.turn {
            return &self.plain;
        }
        write_key(&mut self.with_key[self.place..self.place + DIGITS], self.serial.next());
        &self.with_key
    }
}

/// How many jobs travel in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One document: `{"jobs":[…]}`.
    Json,
    /// A line each.
    Lines,
}

/// What a request with many jobs looks like.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) form: Form,
    pub(super) jobs: usize,
    /// Zero: ready at once.
    pub(super) delay_seconds: u64,
}

/// Requests with many jobs each, half of them with keys of their own.
pub(super) struct Many {
    request: Vec<u8>,
    places: Vec<usize>,
    serial: Serial,
    /// Jobs of a request.
    pub(super) jobs: usize,
}

impl Many {
    pub(super) fn new(shape: Shape, serial: Serial) -> Self {
        let Shape { form, jobs, delay_seconds } = shape;
        // Delays that differ by a second each, so that scheduled jobs are due one after the other.
        let delay = |n: usize| if delay_seconds == 0 { 0 } else { delay_seconds + n as u64 };
        let keyed = |n: usize| if n.is_multiple_of(2) { Keyed::No } else { Keyed::Yes };
        let all = (0..jobs).map(|n| job(keyed(n), delay(n))).collect::<Vec<_>>();
        let (kind, body) = match form {
            Form::Json => ("application/json", format!("{{\"jobs\":[{}]}}", all.join(","))),
            Form::Lines => ("application/x-ndjson", all.join("\n") + "\n"),
        };
        let request = http::request("POST", "/jobs/bulk", kind, body.as_bytes());
        let places = places(&request);
        Self { request, places, serial, jobs }
    }

    /// The next request.
    pub(super) fn next(&mut self) -> &[u8] {
        for place in &self.places {
            write_key(&mut self.request[*place..place + DIGITS], self.serial.next());
        }
        &self.request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_payload_has_150_bytes() {
        assert_eq!(payload().len(), 150);
    }

    #[test]
    fn half_of_the_jobs_have_a_key_and_no_key_comes_twice() -> anyhow::Result<()> {
        let mut many =
            Many::new(Shape { form: Form::Lines, jobs: 10, delay_seconds: 0 }, Serial::beginning_at(7));
        let mut keys = HashSet::new();
        for _ in 0..2 {
            let text = String::from_utf8(many.next().to_vec())?;
            let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
            assert_eq!(body.lines().count(), 10);
            for line in body.lines() {
                let job: serde_json::Value = serde_json::from_str(line)?;
                if let Some(key) = job["idempotency_key"].as_str() {
                    assert!(keys.insert(key.to_owned()), "{key}");
                }
            }
        }
        assert_eq!(keys.len(), 10);
        Ok(())
    }
}
