//! What the door takes of an enqueue, and how it says what is wrong.

use super::*;
use crate::door::tests::{door, errors};
use crate::{IdempotencyScope, Jitter, OnDuplicate, OnHeadFailure, OnUnknown};

fn refused(body: &str) -> Vec<(String, String, String)> {
    errors(&door().enqueue(body.as_bytes(), None).unwrap_err())
}

/// The only error, as `field: code: message`.
fn only(body: &str) -> String {
    let errors = refused(body);
    assert_eq!(errors.len(), 1, "{body}: {errors:?}");
    let (field, code, message) = &errors[0];
    format!("{field}: {code}: {message}")
}

#[test]
fn every_field_is_read() {
    let body = r#"{"type":"App\\Jobs\\Send","queue":"mail-1","payload": {"b":1.10, "a":1e400,"a":"\u0000"},
        "priority":"high","run_at":"2026-07-01T14:00:00+02:00","max_age_seconds":0.5,"max_retries":7,
        "max_lease_losses":2,"lease_seconds":90.25,"timeout_seconds":3600,
        "retry":{"base_seconds":1,"factor":1.5,"cap_seconds":60,"jitter":"none"},"on_unknown":"review",
        "idempotency_key":"k","idempotency_scope":"forever","idempotency_ttl_seconds":1,
        "on_duplicate":"replace","on_mismatch":"flag","subject":{"kind":"order","id":"4711","version":3},
        "ordering_key":"o","on_head_failure":"skip","correlation_id":"c","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "supersede":true,"limits":["crm:t","api"],"fair_key":"f"}"#;
    let job = door().enqueue(body.as_bytes(), None).unwrap();
    let payload = r#"{"b":1.10, "a":1e400,"a":"\u0000"}"#;
    let expected = NewJob {
        job_type: "App\\Jobs\\Send".to_owned(),
        queue: Some("mail-1".to_owned()),
        payload: Some(crate::Json::from_text(payload.to_owned()).unwrap()),
        priority: Some(20),
        delay_ms: None,
        run_at_ms: Some(1_782_907_200_000),
        max_age_ms: Some(500),
        expires_at_ms: None,
        max_retries: Some(7),
        max_lease_losses: Some(2),
        lease_ms: Some(90_250),
        timeout_ms: Some(3_600_000),
        retry: RetryFields {
            base_ms: Some(1000),
            factor: Some(1.5),
            cap_ms: Some(60_000),
            jitter: Some(Jitter::None),
        },
        on_unknown: Some(OnUnknown::Review),
        idempotency_key: Some("k".to_owned()),
        idempotency_scope: Some(IdempotencyScope::Forever),
        idempotency_ttl_ms: Some(1000),
        on_duplicate: Some(OnDuplicate::Replace),
        on_mismatch: Some(OnMismatch::Flag),
        subject: Some(Subject { kind: "order".to_owned(), id: "4711".to_owned(), version: Some(3) }),
        correlation_id: Some("c".to_owned()),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        ordering_key: Some("o".to_owned()),
        on_head_failure: Some(OnHeadFailure::Skip),
        supersede: true,
        limits: vec!["api".to_owned(), "crm:t".to_owned()],
        fair_key: Some("f".to_owned()),
    };
    assert_eq!(job, expected);
}

#[test]
fn null_counts_as_absent_but_as_payload_it_is_one() {
    let body = r#"{"type":"t","queue":null,"priority":null,"run_at":null,"delay_seconds":0,"retry":null,
        "subject":null,"payload":null}"#;
    let job = door().enqueue(body.as_bytes(), None).unwrap();
    let payload = Some(crate::Json::null());
    assert_eq!(job, NewJob { job_type: "t".to_owned(), delay_ms: Some(0), payload, ..NewJob::default() });
    assert_eq!(only(r#"{"type":null}"#), "type: missing: is needed");
}

#[test]
fn to_supersede_takes_a_version() {
    let needed = "subject.version: missing: is needed with `supersede`: it says which job is newer";
    assert_eq!(only(r#"{"type":"t","supersede":true}"#), needed);
    assert_eq!(only(r#"{"type":"t","supersede":true,"subject":{"kind":"o","id":"1"}}"#), needed);
    assert!(door().enqueue(br#"{"type":"t","supersede":false}"#, None).is_ok());
}

#[test]
fn all_that_is_wrong_is_named_at_once() {
    let body = r#"{"max_retry":1,"priority":101,"delay_seconds":-1,"run_at":"2026-07-01T12:00:00","queue":7,
        "retry":{"factor":0.5,"base":1}}"#;
    let expected = [
        ("type", "missing", "is needed"),
        ("delay_seconds", "conflict", "cannot be given together with `run_at`; send one of them"),
        ("queue", "wrong-type", "must be a text, not a number"),
        ("priority", "out-of-range", "must be between 0 and 100"),
        ("delay_seconds", "out-of-range", "must be between 0 and 315360000 seconds"),
        (
            "run_at",
            "time-without-zone",
            "a time needs its zone: write 2026-07-01T12:00:00Z or 2026-07-01T12:00:00+02:00",
        ),
        ("retry.factor", "out-of-range", "must be between 1 and 1000000"),
        ("retry.base", "unknown-field", "is not known here; did you mean `base_seconds`?"),
        ("max_retry", "unknown-field", "is not known here; did you mean `max_retries`?"),
    ];
    let refusal = door().enqueue(body.as_bytes(), None).unwrap_err();
    let got = errors(&refusal);
    let got: Vec<_> = got.iter().map(|(f, c, m)| (f.as_str(), c.as_str(), m.as_str())).collect();
    assert_eq!(got, expected);
    assert_eq!(refusal.code, Code::InvalidRequest);
    assert_eq!(refusal.detail, "type: is needed (and 8 more, see errors)");
}

#[test]
fn wrong_values_one_by_one() {
    for (member, error) in [
        (r#""max_retries":"3""#, "max_retries: wrong-type: must be a whole number, not a text"),
        (r#""max_retries":3.5"#, "max_retries: wrong-type: must be a whole number, without a fraction"),
        (r#""max_retries":-1"#, "max_retries: out-of-range: must be between 0 and 1000"),
        (r#""max_retries":1e400"#, "max_retries: out-of-range: must be between 0 and 1000"),
        (r#""max_retries":18446744073709551616"#, "max_retries: out-of-range: must be between 0 and 1000"),
        (r#""max_lease_losses":101"#, "max_lease_losses: out-of-range: must be between 0 and 100"),
        (
            r#""priority":"urgent""#,
            "priority: unknown-value: must be one of low, medium, high, critical, not \"urgent\"",
        ),
        (r#""priority":true"#, "priority: wrong-type: must be a whole number, not true or false"),
        (r#""delay_seconds":1e400"#, "delay_seconds: out-of-range: must be between 0 and 315360000 seconds"),
        (r#""delay_seconds":"5m""#, "delay_seconds: wrong-type: must be a number of seconds, not a text"),
        (r#""lease_seconds":0.9994"#, "lease_seconds: out-of-range: must be between 1 and 86400 seconds"),
        (
            r#""timeout_seconds":0"#,
            "timeout_seconds: out-of-range: must be between 0.001 and 315360000 seconds",
        ),
        (
            r#""run_at":1782907200"#,
            "run_at: wrong-type: must be a time as text, such as \"2026-07-01T12:00:00Z\", not a number",
        ),
        (
            r#""run_at":"tomorrow""#,
            "run_at: bad-time: not a time: write RFC 3339 such as 2026-07-01T12:00:00Z",
        ),
        (
            r#""expires_at":"9999-12-31T23:59:59-01:00""#,
            "expires_at: out-of-range: the year must lie between 0000 and 9999",
        ),
        (
            r#""queue":"a b""#,
            "queue: bad-name: must consist of letters, digits, dots, hyphens and underscores, and begin with a letter or digit",
        ),
        (r#""queue":"""#, "queue: empty: must not be empty"),
        (
            r#""idempotency_key":"a\u0000b""#,
            "idempotency_key: bad-character: must not contain the character '\\0'",
        ),
        (
            r#""idempotency_key":"\ud800""#,
            "idempotency_key: lone-surrogate: has half a surrogate pair, which is not Unicode text",
        ),
        (r#""retry":5"#, "retry: wrong-type: must be an object, not a number"),
        (r#""retry":{"factor":1e400}"#, "retry.factor: out-of-range: must be between 1 and 1000000"),
        (r#""retry":{"jitter":1}"#, "retry.jitter: wrong-type: must be a text, not a number"),
        (r#""retry":{"\ud800":1}"#, "retry: lone-surrogate: has a field whose name is not Unicode text"),
        (r#""subject":{"kind":"order"}"#, "subject.id: missing: is needed"),
        (
            r#""subject":{"kind":"o","id":"1","version":1.5}"#,
            "subject.version: wrong-type: must be a whole number, without a fraction",
        ),
        (
            r#""max_age_seconds":1,"expires_at":"2026-07-01T12:00:00Z""#,
            "max_age_seconds: conflict: cannot be given together with `expires_at`; send one of them",
        ),
        (r#""on_head_failure":"skip""#, "on_head_failure: conflict: means nothing without `ordering_key`"),
        (r#""ordering_key":"""#, "ordering_key: empty: must not be empty"),
        (r#""queue":"a","queue":"a""#, "queue: duplicate-field: stands there twice; send it once"),
        (r#""type":"u""#, "type: duplicate-field: stands there twice; send it once"),
    ] {
        assert_eq!(only(&format!("{{\"type\":\"t\",{member}}}")), error);
    }
}

#[test]
fn types_are_printable_text_of_at_most_255_bytes() {
    assert_eq!(only(r#"{"type":"a\nb"}"#), "type: bad-character: must not contain the character '\\n'");
    assert_eq!(only(r#"{"type":" "}"#), "type: empty: must not be empty");
    assert!(door().enqueue(format!("{{\"type\":\"{}\"}}", "t".repeat(255)).as_bytes(), None).is_ok());
    let error = only(&format!("{{\"type\":\"{}\"}}", "t".repeat(256)));
    assert_eq!(error, "type: too-long: has 256 bytes; at most 255 are allowed");
}

#[test]
fn what_later_features_will_bring_is_unknown_until_then() {
    for field in ["operation_id", "enqueue"] {
        let error = only(&format!("{{\"type\":\"t\",\"{field}\":1}}"));
        assert!(error.starts_with(&format!("{field}: unknown-field: ")), "{error}");
    }
}

#[test]
fn payloads_have_a_size_and_a_depth() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let body = |payload: &str| format!("{{\"type\":\"t\",\"payload\":{payload}}}");
    for (depth, fits) in [(100, true), (128, true), (129, false), (1000, false), (100_000, false)] {
        let answer = door().enqueue(body(&nested(depth)).as_bytes(), None);
        assert_eq!(answer.as_ref().is_ok(), fits, "{depth}");
        if let Err(refusal) = answer {
            assert_eq!((refusal.code, refusal.code.status()), (Code::InvalidJson, 400));
            assert_eq!(refusal.errors[0].code, "too-deep");
        }
    }
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert!(door().enqueue(body(&text(262_144)).as_bytes(), None).is_ok());
    let refusal = door().enqueue(body(&text(262_145)).as_bytes(), None).unwrap_err();
    assert_eq!((refusal.code, refusal.code.status()), (Code::PayloadTooLarge, 422));
    assert_eq!(refusal.detail, "payload: has 262145 bytes; at most 262144 are allowed");
}

#[test]
fn bodies_that_are_not_json_say_where() {
    for (body, detail) in [
        (r#"{"type":"t",}"#, "trailing comma at line 1 column 13"),
        ("{\"type\":\n\"t\"", "EOF while parsing an object at line 2 column 3"),
        ("{'type':'t'}", "key must be a string at line 1 column 2"),
        (r#"{"type":"t"} x"#, "trailing characters at line 1 column 14"),
        (
            "{\"type\":\"a\nb\"}",
            "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 10",
        ),
        (r#"{"type":NaN}"#, "expected value at line 1 column 9"),
        (r#"{"type":01}"#, "invalid number at line 1 column 10"),
        (r#"{"\ud800":1}"#, "unexpected end of hex escape at line 1 column 9"),
        ("type=t", "expected ident at line 1 column 2"),
    ] {
        let refusal = door().enqueue(body.as_bytes(), None).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidJson, "{body}");
        assert_eq!(refusal.detail, format!("the body is not JSON that can be read: {detail}"));
    }
    let brackets = "[".repeat(100_000);
    assert_eq!(door().enqueue(brackets.as_bytes(), None).unwrap_err().code, Code::InvalidJson);
    let braces = "{\"a\":".repeat(100_000);
    assert_eq!(door().enqueue(braces.as_bytes(), None).unwrap_err().code, Code::InvalidJson);
}

#[test]
fn a_body_must_be_an_object() {
    for (body, got) in [
        ("[]", "an array"),
        ("\"x\"", "a text"),
        ("null", "null"),
        ("1", "a number"),
        ("true", "true or false"),
    ] {
        assert_eq!(only(body), format!(": wrong-type: the body must be a JSON object, not {got}"));
    }
    assert_eq!(only(""), "type: missing: is needed");
}

#[test]
fn an_endless_list_of_errors_ends() {
    let fields: Vec<_> = (0..1000).map(|n| format!("\"zz{n}\":1")).collect();
    let errors = refused(&format!("{{\"type\":\"t\",{}}}", fields.join(",")));
    assert_eq!(errors.len(), 100);
    assert_eq!(errors[0].1, "too-many");
    let endless = format!("{{\"type\":\"t\",\"{}\":1}}", "z".repeat(1_000_000));
    assert!(only(&endless).len() < 1000);
}

#[test]
fn the_key_may_come_in_the_header() {
    let key = |body: &str, header: &str| door().enqueue(body.as_bytes(), Some(header.as_bytes()));
    let job = key(r#"{"type":"t"}"#, "k").unwrap();
    assert_eq!((job.idempotency_key.as_deref(), job.on_mismatch), (Some("k"), Some(OnMismatch::Reject)));
    let job = key(r#"{"type":"t","idempotency_key":"k","on_mismatch":"flag"}"#, "\"k\"").unwrap();
    assert_eq!((job.idempotency_key.as_deref(), job.on_mismatch), (Some("k"), Some(OnMismatch::Flag)));
    let refusal = key(r#"{"type":"t","idempotency_key":"other"}"#, "k").unwrap_err();
    assert_eq!((refusal.code, refusal.code.status()), (Code::IdempotencyKeyConflict, 422));
    assert_eq!(key(r#"{"type":"t"}"#, "").unwrap_err().errors[0].field, "Idempotency-Key");
    assert_eq!(key(r#"{"type":"t"}"#, &"k".repeat(256)).unwrap_err().errors[0].code, "too-long");
}

#[test]
fn in_bulk_each_job_is_judged_by_itself() {
    let body = r#"{"jobs":[{"type":"a"},{"type":"b","prio":1},7,{"type":"c","priority":-1}],"atomic":true}"#;
    let read = door().enqueue_bulk(body.as_bytes(), None).unwrap();
    assert!(read.atomic);
    let fields: Vec<_> = read
        .jobs
        .iter()
        .map(|job| match job {
            Ok(job) => job.job_type.clone(),
            Err(refusal) => format!("{} {}", refusal.errors[0].field, refusal.errors[0].code),
        })
        .collect();
    assert_eq!(
        fields,
        ["a", "jobs[1].prio unknown-field", "jobs[2] wrong-type", "jobs[3].priority out-of-range"]
    );
}

#[test]
fn a_bulk_body_itself_must_be_right() {
    let code = |body: &str| {
        let refusal = door().enqueue_bulk(body.as_bytes(), None).unwrap_err();
        format!("{} {}", refusal.errors[0].field, refusal.errors[0].code)
    };
    assert_eq!(code("{}"), "jobs missing");
    assert_eq!(code(r#"{"jobs":{}}"#), "jobs wrong-type");
    assert_eq!(code(r#"{"job":[],"jobs":[]}"#), "job unknown-field");
    assert_eq!(code(r#"{"jobs":[],"atomic":1}"#), "atomic wrong-type");
    let many = |count: usize| format!("{{\"jobs\":[{}]}}", vec!["{}"; count].join(","));
    assert_eq!(code(&many(10_001)), "jobs too-many");
    assert_eq!(door().enqueue_bulk(many(10_000).as_bytes(), None).unwrap().jobs.len(), 10_000);
    assert_eq!(door().enqueue_bulk(br#"{"jobs":[]}"#, None), Ok(NewJobs::default()));
    let refusal = door().enqueue_bulk(br#"{"jobs":[]}"#, Some(b"k")).unwrap_err();
    assert_eq!(refusal.errors[0].field, "Idempotency-Key");
}

#[test]
fn lines_of_a_stream_are_judged_as_lines() {
    let line = |bytes: &[u8]| door().enqueue_line(bytes);
    for blank in [b"".as_slice(), b" \t\r", b"\r"] {
        assert_eq!(line(blank), None);
    }
    assert_eq!(line(b" {\"type\":\"t\"} \r").unwrap().unwrap().job_type, "t");
    for (bytes, says) in [
        (b"\xEF\xBB\xBF{}".as_slice(), "the line begins with a byte order mark (EF BB BF); send it without"),
        (b"{\"type\":\"\xFF\"}", "the line is not UTF-8 at column 10 (byte 9); send UTF-8"),
        (b"{\"type\":", "the line is not JSON that can be read: EOF while parsing a value at column 8"),
        (b"{} {}", "the line is not JSON that can be read: trailing characters at column 4"),
        (b"[1]", "the line must be a JSON object, not an array"),
        (b"{\"type\":\"t\",\"max_retry\":1}", "max_retry: is not known here; did you mean `max_retries`?"),
        (b"{}", "type: is needed"),
    ] {
        assert_eq!(line(bytes).unwrap().unwrap_err().detail, says);
    }
}
