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

/// The key with that number, as the requests have it.
pub(super) fn key(number: u64) -> [u8; DIGITS] {
    let mut key = [0; DIGITS];
    write_key(&mut key, number);
    key
}

/// Gives each key of a request the next number.
fn write_keys(request: &mut [u8], places: &[usize], serial: &Serial) {
    for place in places {
        write_key(&mut request[*place..place + DIGITS], serial.next());
    }
}

/// Where the digits of each key are. Anything but that many keys is an error: jobs whose key is not written anew would be
/// repetitions of one job, and a server that answers those looks faster than it is.
fn places(text: &[u8], keys: usize) -> anyhow::Result<Vec<usize>> {
    let digits = [b'0'; DIGITS];
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].windows(DIGITS).position(|window| window == digits) {
        places.push(at + found);
        at += found + DIGITS;
    }
    anyhow::ensure!(places.len() == keys, "places for {} keys in a request with {keys}", places.len());
    Ok(places)
}

/// Requests with one job each: every second one has a key of its own.
#[derive(Clone)]
pub(super) struct Single {
    with_key: Vec<u8>,
    places: Vec<usize>,
    plain: Vec<u8>,
    serial: Serial,
    turn: bool,
}

impl Single {
    pub(super) fn new(serial: Serial) -> anyhow::Result<Self> {
        let request = |body: String| http::request("POST", "/jobs", "application/json", body.as_bytes());
        let with_key = request(job(Keyed::Yes, 0));
        let places = places(&with_key, 1)?;
        Ok(Self { with_key, places, plain: request(job(Keyed::No, 0)), serial, turn: false })
    }

    /// The next request.
    pub(super) fn next(&mut self) -> &[u8] {
        self.turn = !self.turn;
        if self.turn {
            return &self.plain;
        }
        write_keys(&mut self.with_key, &self.places, &self.serial);
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
#[derive(Clone)]
pub(super) struct Many {
    request: Vec<u8>,
    places: Vec<usize>,
    serial: Serial,
    /// Jobs of a request.
    pub(super) jobs: usize,
}

impl Many {
    pub(super) fn new(shape: Shape, serial: Serial) -> anyhow::Result<Self> {
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
        let places = places(&request, jobs / 2)?;
        Ok(Self { request, places, serial, jobs })
    }

    /// The next request.
    pub(super) fn next(&mut self) -> &[u8] {
        write_keys(&mut self.request, &self.places, &self.serial);
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
            Many::new(Shape { form: Form::Lines, jobs: 10, delay_seconds: 0 }, Serial::beginning_at(7))?;
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

    #[test]
    fn every_second_request_with_one_job_has_a_key_that_is_new() -> anyhow::Result<()> {
        let mut single = Single::new(Serial::beginning_at(7))?;
        let mut keys = Vec::new();
        for _ in 0..4 {
            let text = String::from_utf8(single.next().to_vec())?;
            let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
            let job: serde_json::Value = serde_json::from_str(body)?;
            keys.push(job["idempotency_key"].as_str().map(str::to_owned));
        }
        let eighth = String::from_utf8(key(8).to_vec())?;
        assert_eq!(keys, [None, Some("0000000000000007".to_owned()), None, Some(eighth)]);
        Ok(())
    }

    #[test]
    fn a_request_whose_keys_are_not_where_they_should_be_is_refused() {
        let keyless = job(Keyed::No, 0);
        let error = places(keyless.as_bytes(), 1).expect_err("there is no key in it");
        assert_eq!(error.to_string(), "places for 0 keys in a request with 1");
        let one = job(Keyed::Yes, 0);
        assert!(places(one.as_bytes(), 1).is_ok());
        assert!(places(one.repeat(2).as_bytes(), 1).is_err(), "a key too many");
    }
}
