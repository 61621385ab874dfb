//! Reads what is said about limits: those of a job, what an operator makes of one, what a worker holds back.

use super::reader::{Reader, Unknown};
use super::text::{self, Alphabet, TextRule};
use super::{Door, DoorLimits, LimitBounds, RateBounds, Throttle};
use crate::problem::{FieldCode, Refusal};

impl Door {
    /// `PUT /limits/{name}`. What `GET` shows besides the settings may be sent along and is not looked at, so that an
    /// answer can be edited and sent back; only `name` must be that of the path.
    pub fn limit_settings(&self, name: &str, body: &[u8]) -> Result<LimitBounds, Refusal> {
        let limits = &self.limits;
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let settings = LimitBounds {
            max_running: reader.count("max_running", &limits.limit_running),
            rate: reader.nested("rate", |rate| limits.rate(rate)),
        };
        if reader.text("name", limits.queue_rule()).is_some_and(|sent| sent != name) {
            reader.fail("name", FieldCode::Conflict, "must be the name of the path");
        }
        for shown in ["running", "partitions", "throttled", "uses"] {
            reader.skip(shown);
        }
        reader.finish().map(|_| settings)
    }

    /// `POST /limits/{name}/open`: the partition, if only that one is meant.
    pub fn open_limit(&self, body: &[u8]) -> Result<Option<String>, Refusal> {
        let mut reader = Reader::body(body, Unknown::Refuse)?;
        let partition = reader.text("partition", self.limits.partition_rule());
        reader.finish().map(|_| partition)
    }

    /// `{name}` of a path, decoded: without a partition, since settings hold for all of them.
    pub fn limit_name<'a>(&self, text: &'a str) -> Result<&'a str, Refusal> {
        let refuse = |(code, message)| Refusal::field("name", code, message);
        if let Some((name, _)) = text.split_once(':') {
            let message = format!(
                "is a partition; settings are made for the limit, {name}, and hold for each of its own"
            );
            return Err(refuse((FieldCode::BadName, message)));
        }
        self.limits.queue_rule().check(text).map_err(refuse)?;
        Ok(text)
    }
}

impl DoorLimits {
    /// Limits of a job, each once.
    pub(super) fn limits(&self, reader: &mut Reader<'_>) -> Vec<String> {
        let any = TextRule::new(Alphabet::NoNul, usize::MAX);
        let mut named = reader.texts("limits", self.limits_per_job, any).unwrap_or_default();
        for (index, text) in named.iter().enumerate() {
            if let Err((code, message)) = self.check_limit(text) {
                reader.fail(&format!("limits[{index}]"), code, message);
            }
        }
        named.sort_unstable();
        named.dedup();
        named
    }

    /// `throttle` of a failure.
    pub(super) fn throttle(&self, reader: &mut Reader<'_>) -> Option<Throttle> {
        let read = |throttle: &mut Reader<'_>| {
            throttle.require("limit");
            throttle.require("for_seconds");
            let limit = throttle.text("limit", TextRule::new(Alphabet::NoNul, usize::MAX));
            if let Some((code, message)) = limit.as_deref().and_then(|limit| self.check_limit(limit).err()) {
                throttle.fail("limit", code, message);
            }
            let for_ms = throttle.seconds("for_seconds", &self.throttle_ms);
            Some(Throttle { limit: limit?, for_ms: for_ms? })
        };
        reader.nested("throttle", read).flatten()
    }

    fn rate(&self, reader: &mut Reader<'_>) -> RateBounds {
        reader.require("count");
        reader.require("per_seconds");
        // What is missing is an error, so what stands in for it is never used.
        RateBounds {
            count: reader.count("count", &self.rate_count).unwrap_or(1),
            per_ms: reader.seconds("per_seconds", &self.rate_per_ms).unwrap_or(*self.rate_per_ms.start()),
            spread: reader.flag("spread").unwrap_or(false),
        }
    }

    /// A limit as jobs name it: `crm`, or `crm:tenant-42`.
    fn check_limit(&self, text: &str) -> Result<(), (FieldCode, String)> {
        let (name, partition) = text.split_once(':').map_or((text, None), |(name, part)| (name, Some(part)));
        let told = |what: &str| {
            let what = what.to_owned();
            move |(code, message): (FieldCode, String)| (code, format!("{what} {message}"))
        };
        self.queue_rule().check(name).map_err(told("the name"))?;
        let Some(partition) = partition else { return Ok(()) };
        self.partition_rule().check(partition).map_err(told("the partition after the first colon"))
    }

    /// The same rule as a regular expression, for the document.
    pub(crate) fn limit_pattern(&self) -> String {
        text::limit_pattern(self.name_max_bytes, self.partition_max_bytes)
    }

    pub(crate) const fn partition_rule(&self) -> TextRule {
        TextRule::new(Alphabet::Printable, self.partition_max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::tests::{door, errors};

    fn put(body: &str) -> Result<LimitBounds, Refusal> {
        door().limit_settings("crm", body.as_bytes())
    }

    fn code(refusal: &Refusal) -> Vec<(String, String)> {
        errors(refusal).into_iter().map(|(field, code, _)| (field, code)).collect()
    }

    #[test]
    fn settings_of_a_limit() {
        assert_eq!(put(""), Ok(LimitBounds::default()));
        assert_eq!(put(r#"{"max_running":null,"rate":null}"#), Ok(LimitBounds::default()));
        let rate = RateBounds { count: 20, per_ms: 1_000, spread: false };
        let full = LimitBounds { max_running: Some(3), rate: Some(rate) };
        assert_eq!(put(r#"{"max_running":3,"rate":{"count":20,"per_seconds":1}}"#), Ok(full));
        let spread = LimitBounds { max_running: None, rate: Some(RateBounds { spread: true, ..rate }) };
        assert_eq!(put(r#"{"rate":{"count":20,"per_seconds":1.0,"spread":true}}"#), Ok(spread));
        // An answer of GET, sent back.
        let shown = r#"{"name":"crm","max_running":3,"rate":null,"running":2,"partitions":1,"throttled":0,"uses":[]}"#;
        assert_eq!(put(shown), Ok(LimitBounds { max_running: Some(3), rate: None }));
    }

    #[test]
    fn zero_negative_and_half_rates_are_refused() {
        for (body, field, expected) in [
            (r#"{"max_running":0}"#, "max_running", "out-of-range"),
            (r#"{"max_running":-1}"#, "max_running", "out-of-range"),
            (r#"{"max_running":1000001}"#, "max_running", "out-of-range"),
            (r#"{"max_running":2.5}"#, "max_running", "wrong-type"),
            (r#"{"max_running":"3"}"#, "max_running", "wrong-type"),
            (r#"{"rate":20}"#, "rate", "wrong-type"),
            (r#"{"rate":{"count":0,"per_seconds":1}}"#, "rate.count", "out-of-range"),
            (r#"{"rate":{"count":-5,"per_seconds":1}}"#, "rate.count", "out-of-range"),
            (r#"{"rate":{"count":5,"per_seconds":0}}"#, "rate.per_seconds", "out-of-range"),
            (r#"{"rate":{"count":5,"per_seconds":-1}}"#, "rate.per_seconds", "out-of-range"),
            (r#"{"rate":{"count":5,"per_seconds":0.009}}"#, "rate.per_seconds", "out-of-range"),
            (r#"{"rate":{"count":5,"per_seconds":86400.001}}"#, "rate.per_seconds", "out-of-range"),
            (r#"{"rate":{"count":5}}"#, "rate.per_seconds", "missing"),
            (r#"{"rate":{"per_seconds":1}}"#, "rate.count", "missing"),
            (r#"{"rate":{"count":5,"per_seconds":1,"burst":9}}"#, "rate.burst", "unknown-field"),
            (r#"{"max_runing":3}"#, "max_runing", "unknown-field"),
            (r#"{"name":"other"}"#, "name", "conflict"),
        ] {
            assert_eq!(code(&put(body).unwrap_err()), [(field.to_owned(), expected.to_owned())], "{body}");
        }
        let unknown = put(r#"{"max_runing":3}"#).unwrap_err();
        assert!(unknown.detail.contains("max_running"), "{}", unknown.detail);
    }

    #[test]
    fn a_limit_is_opened_as_a_whole_or_in_a_partition() {
        let open = |body: &str| door().open_limit(body.as_bytes());
        assert_eq!(open(""), Ok(None));
        assert_eq!(open(r#"{"partition":null}"#), Ok(None));
        assert_eq!(open(r#"{"partition":"tenant-42"}"#), Ok(Some("tenant-42".to_owned())));
        let long = format!(r#"{{"partition":"{}"}}"#, "x".repeat(129));
        for (body, field, expected) in [
            (r#"{"partition":""}"#, "partition", "empty"),
            (r#"{"partition":"a\nb"}"#, "partition", "bad-character"),
            (r#"{"partition":7}"#, "partition", "wrong-type"),
            (&long, "partition", "too-long"),
            (r#"{"part":"a"}"#, "part", "unknown-field"),
        ] {
            assert_eq!(code(&open(body).unwrap_err()), [(field.to_owned(), expected.to_owned())], "{body}");
        }
    }

    #[test]
    fn names_in_paths_have_no_partition() {
        assert_eq!(door().limit_name("crm"), Ok("crm"));
        for name in ["", "crm:tenant", ".crm", "a b", "ü"] {
            assert_eq!(door().limit_name(name).unwrap_err().errors[0].field, "name", "{name}");
        }
        assert_eq!(door().limit_name(&"a".repeat(64)).map(str::len), Ok(64));
        assert!(door().limit_name(&"a".repeat(65)).is_err());
    }

    #[test]
    fn limits_of_a_job_are_at_most_two_names_with_sane_partitions() {
        let job =
            |limits: &str| door().enqueue(format!(r#"{{"type":"t","limits":{limits}}}"#).as_bytes(), None);
        assert_eq!(job("null").unwrap().limits, Vec::<String>::new());
        assert_eq!(job(r#"["crm:tenant-42","api"]"#).unwrap().limits, ["api", "crm:tenant-42"]);
        assert_eq!(job(r#"["crm","crm"]"#).unwrap().limits, ["crm"], "named twice is named once");
        let longest = format!(r#"["{}:{}"]"#, "a".repeat(64), "ü".repeat(64));
        assert_eq!(job(&longest).unwrap().limits[0].len(), 64 + 1 + 128);
        assert_eq!(job(r#"["crm:https://a/b?c:d"]"#).unwrap().limits, ["crm:https://a/b?c:d"]);
        for (limits, field, expected) in [
            ("[]", "limits", "empty"),
            (r#"["a","b","c"]"#, "limits", "too-many"),
            (r#""crm""#, "limits", "wrong-type"),
            (r#"["a",7]"#, "limits[1]", "wrong-type"),
            (r#"[""]"#, "limits[0]", "empty"),
            (r#"[":p"]"#, "limits[0]", "empty"),
            (r#"["crm:"]"#, "limits[0]", "empty"),
            (r#"["crm: "]"#, "limits[0]", "empty"),
            (r#"["c m"]"#, "limits[0]", "bad-name"),
            (r#"["a","crm:a\u0007b"]"#, "limits[1]", "bad-character"),
            (r#"["crm:a\nb"]"#, "limits[0]", "bad-character"),
            (r#"["crm:\ud800"]"#, "limits[0]", "lone-surrogate"),
        ] {
            assert_eq!(
                code(&job(limits).unwrap_err()),
                [(field.to_owned(), expected.to_owned())],
                "{limits}"
            );
        }
        for (name, partition) in [(65, 1), (1, 129)] {
            let long = format!(r#"["{}:{}"]"#, "a".repeat(name), "b".repeat(partition));
            assert_eq!(code(&job(&long).unwrap_err()), [("limits[0]".to_owned(), "too-long".to_owned())]);
        }
    }

    #[test]
    fn a_failure_may_hold_back_a_limit() {
        let fail = |throttle: &str| door().fail(format!(r#"{{"throttle":{throttle}}}"#).as_bytes());
        assert_eq!(fail("null").unwrap().value.throttle, None);
        let throttle = Throttle { limit: "crm:tenant-42".to_owned(), for_ms: 1_500 };
        let read = fail(r#"{"limit":"crm:tenant-42","for_seconds":1.5}"#).unwrap();
        assert_eq!(read.value.throttle, Some(throttle));
        let read = fail(r#"{"limit":"crm","for_seconds":1,"why":"429"}"#).unwrap();
        assert_eq!(read.ignored, ["throttle.why"], "a report is not lost to a spelling");
        for (throttle, field, expected) in [
            (r#"{"limit":"crm"}"#, "throttle.for_seconds", "missing"),
            (r#"{"for_seconds":1}"#, "throttle.limit", "missing"),
            (r#"{"limit":"crm","for_seconds":0}"#, "throttle.for_seconds", "out-of-range"),
            (r#"{"limit":"crm","for_seconds":86400.001}"#, "throttle.for_seconds", "out-of-range"),
            (r#"{"limit":"crm:","for_seconds":1}"#, "throttle.limit", "empty"),
            (r#""crm""#, "throttle", "wrong-type"),
        ] {
            assert_eq!(
                code(&fail(throttle).unwrap_err()),
                [(field.to_owned(), expected.to_owned())],
                "{throttle}"
            );
        }
    }
}
