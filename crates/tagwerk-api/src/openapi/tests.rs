//! The document is whole, and its examples are accepted.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Method, Shape, routes};
use crate::door::tests::door;
use crate::problem::{Code, Refusal};
use crate::{answer, query};

/// Codes that belong to no route: for other paths and methods, and inside bulk answers.
const EVERYWHERE: [Code; 4] =
    [Code::TlsRequired, Code::NotFound, Code::MethodNotAllowed, Code::AtomicRefused];

mod edges;

fn document() -> Value {
    super::document(door().limits())
}

/// Every text behind `$ref` in the document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "$ref" => {
                        found.insert(text.clone());
                    }
                    _ => references(member, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| references(element, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    let components = document["components"].as_object().unwrap();
    let names = |kind: &String, entries: &Value| {
        let names = entries.as_object().unwrap().keys();
        names.map(|name| format!("#/components/{kind}/{name}")).collect::<Vec<_>>()
    };
    let there: BTreeSet<String> =
        components.iter().flat_map(|(kind, entries)| names(kind, entries)).collect();
    assert_eq!(found.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new(), "dangling");
    // Named by its name, not by its place.
    assert_eq!(document["security"], json!([{}, {"token": []}]));
    let is_named = |place: &&String| *place != "#/components/securitySchemes/token";
    let unused: BTreeSet<_> = there.difference(&found).filter(is_named).cloned().collect();
    let anywhere = EVERYWHERE.map(|code| format!("#/components/examples/{}", code.name()));
    assert_eq!(unused, anywhere.into());
}

#[test]
fn every_route_is_described_once() {
    let mut seen = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for route in routes() {
        assert!(seen.insert((route.method.name(), route.path)), "{} {}", route.method.name(), route.path);
        assert!(ids.insert(route.id), "{}", route.id);
        assert!(
            !route.summary.is_empty() && !route.about.is_empty() && !route.answers.is_empty(),
            "{}",
            route.id
        );
        let says_something = matches!(route.method, Method::Post | Method::Put) && route.id != "open_queue";
        assert_eq!(route.body.is_some(), says_something, "{}", route.id);
        for answer in route.answers {
            assert_eq!(
                answer.example.is_some(),
                matches!(answer.shape, Shape::Of(_) | Shape::OrNull(_)),
                "{}",
                route.id
            );
        }
    }
    assert_eq!(seen.len(), 50);
    let document = document();
    let operations: usize =
        document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len()).sum();
    assert_eq!(operations, 50);
}

#[test]
fn problems_stand_under_their_status() {
    let document = document();
    let enqueue = &document["paths"]["/jobs"]["post"]["responses"];
    assert_eq!(
        enqueue["422"]["description"],
        "`invalid-request`, `payload-too-large`, `unknown-type`, `unknown-limit`, `idempotency-key-reused`, `idempotency-key-conflict`"
    );
    assert_eq!(enqueue["409"]["description"], "`duplicate`, `idempotency-key-taken`");
    assert!(enqueue["503"]["headers"]["Retry-After"].is_object());
    assert_eq!(document["paths"]["/readyz"]["get"]["responses"]["503"]["description"], "It cannot.");
    let used: BTreeSet<_> = routes().flat_map(super::Route::all_problems).map(Code::name).collect();
    for code in Code::ALL.iter().filter(|code| !EVERYWHERE.contains(code)) {
        assert!(used.contains(code.name()), "{} comes from no route", code.name());
    }
}

/// What the door says to the example of a route's body.
fn at_the_door(id: &str, body: &[u8]) -> Result<Vec<String>, Refusal> {
    let door = door();
    let strict = Vec::new;
    match id {
        "enqueue" => door.enqueue(body, None).map(|_| strict()),
        "enqueue_bulk" => {
            let jobs = door.enqueue_bulk(body, None)?.jobs;
            jobs.into_iter().collect::<Result<Vec<_>, _>>().map(|_| strict())
        }
        "claim" => door.claim(body).map(|_| strict()),
        "claim_bulk" => door.claim_bulk(body).map(|_| strict()),
        "complete" => door.complete(body).map(|read| read.ignored),
        "fail" => door.fail(body).map(|read| read.ignored),
        "release" => door.release(body).map(|read| read.ignored),
        "heartbeat" => door.heartbeat(body).map(|read| read.ignored),
        "effect_begin" => door.effect_begin(body).map(|_| strict()),
        "effect_finish" => door.effect_finish(body).map(|_| strict()),
        "effect_abort" => door.effect_abort(body).map(|_| strict()),
        "checkpoint" => door.checkpoint(body).map(|_| strict()),
        "heartbeat_bulk" | "report_bulk" => {
            let read = if id == "report_bulk" { door.report_bulk(body) } else { door.heartbeat_bulk(body) }?;
            read.value.reports.into_iter().try_for_each(|item| item.report.map(|_| ()))?;
            read.value.claim.transpose().map(|_| read.ignored)
        }
        "retry" => door.retry(body, None).map(|_| strict()),
        "discard" => door.discard(body, None).map(|_| strict()),
        "cancel" => door.cancel(body, None).map(|_| strict()),
        "force_fail" => door.force_fail(body, None).map(|_| strict()),
        "unblock" => door.unblock(body, None).map(|_| strict()),
        "put_limit" => door.limit_settings("crm", body).map(|_| strict()),
        "open_limit" => door.open_limit(body).map(|_| strict()),
        "acknowledge_alert" => door.acknowledge(body).map(|_| strict()),
        "put_type" => door.type_settings("send-invoice", body).map(|_| strict()),
        "put_queue" => door.queue_settings(body).map(|_| strict()),
        "pause_queue" => door.pause(body).map(|_| strict()),
        "resume_queue" => door.resume(body).map(|_| strict()),
        "drain_queue" => door.drain(body).map(|_| strict()),
        other => panic!("the body of {other} is not tested"),
    }
}

#[test]
fn examples_of_bodies_pass_the_door_with_nothing_ignored() {
    for route in routes() {
        let Some(body) = route.body else { continue };
        let text = (body.example)().to_string();
        assert_eq!(at_the_door(route.id, text.as_bytes()), Ok(Vec::new()), "{}: {text}", route.id);
    }
}

#[test]
fn the_example_of_a_stream_is_judged_as_it_says() {
    let route = routes().find(|route| route.id == "enqueue_bulk").unwrap();
    let (sent, answered) = (route.lines.unwrap().example)();
    let judged: Vec<_> = sent.lines().map(|line| door().enqueue_line(line.as_bytes()).unwrap()).collect();
    let answers: Vec<answer::StreamLine> =
        answered.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [answer::StreamLine::Refused(refused), answer::StreamLine::End(end)] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert!(judged[0].is_ok());
    assert_eq!((refused.line, refused.status), (2, 422));
    assert_eq!(refused.problem.errors, judged[1].clone().unwrap_err().errors);
    assert!(end.done && end.created == 1 && end.refused == 1);
    let document = document();
    let bulk = &document["paths"]["/jobs/bulk"]["post"];
    assert_eq!(bulk["requestBody"]["content"]["application/x-ndjson"]["example"], sent);
    assert_eq!(bulk["responses"]["200"]["content"]["application/x-ndjson"]["example"], answered);
}

#[test]
fn bodies_that_the_document_calls_optional_may_be_empty() {
    let document = document();
    for route in routes().filter(|route| route.body.is_some()) {
        let method = route.method.name().to_ascii_lowercase();
        let required = &document["paths"][route.path][method]["requestBody"]["required"];
        // A heartbeat and a call about an effect without a token pass the door and are refused by the engine.
        let may_be_empty =
            at_the_door(route.id, b"").is_ok() && route.id != "heartbeat" && !route.id.starts_with("effect_");
        assert_eq!(required, &Value::Bool(!may_be_empty), "{}", route.id);
    }
}

fn reads<T: DeserializeOwned>(example: Value) -> bool {
    serde_json::from_value::<T>(example).is_ok()
}

#[test]
fn examples_of_answers_are_what_a_client_reads() {
    for route in routes() {
        for given in route.answers {
            let (Some(example), Shape::Of(schema) | Shape::OrNull(schema)) = (given.example, given.shape)
            else {
                continue;
            };
            let read = match schema {
                "Job" => reads::<answer::Job>,
                "Deleted" => reads::<answer::Deleted>,
                "EnqueueAnswer" => reads::<answer::EnqueueAnswer>,
                "CompletedJob" => reads::<answer::CompletedJob>,
                "Enqueued" => reads::<answer::Enqueued>,
                "BulkEnqueueAnswer" => reads::<answer::BulkEnqueueAnswer>,
                "JobsPage" => reads::<answer::JobsPage>,
                "ReviewPage" => reads::<answer::ReviewPage>,
                "AttemptsPage" => reads::<answer::AttemptsPage>,
                "AlertsPage" => reads::<answer::AlertsPage>,
                "AlertInfo" => reads::<answer::AlertInfo>,
                "AuditPage" => reads::<answer::AuditPage>,
                "Explain" => reads::<answer::Explain>,
                "ClaimedJob" => reads::<answer::ClaimedJob>,
                "BulkClaimAnswer" => reads::<answer::BulkClaimAnswer>,
                "EffectAnswer" => reads::<answer::EffectAnswer>,
                "HeartbeatAnswer" => reads::<answer::HeartbeatAnswer>,
                "BulkHeartbeatAnswer" => reads::<answer::BulkHeartbeatAnswer>,
                "ReportBulkAnswer" => reads::<answer::ReportBulkAnswer>,
                "TypeInfo" => reads::<answer::TypeInfo>,
                "TypeList" => reads::<answer::TypeList>,
                "QueueInfo" => reads::<answer::QueueInfo>,
                "LimitInfo" => reads::<answer::LimitInfo>,
                "LimitList" => reads::<answer::LimitList>,
                "LimitDeleted" => reads::<answer::LimitDeleted>,
                "QueueList" => reads::<answer::QueueList>,
                "WorkerList" => reads::<answer::WorkerList>,
                "Stats" => reads::<answer::Stats>,
                "Livez" => reads::<answer::Livez>,
                "Readyz" => reads::<answer::Readyz>,
                other => panic!("the answer {other} is not tested"),
            };
            assert!(read(example()), "{} {schema}: {}", route.id, example());
        }
    }
}

/// The names that a schema of the document has, those of schemas that it includes among them.
fn properties(document: &Value, schema: &Value) -> BTreeSet<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return properties(document, &document["components"]["schemas"][name]);
    }
    let own = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let included =
        schema["allOf"].as_array().into_iter().flatten().flat_map(|part| properties(document, part));
    own.chain(included).collect()
}

/// The names that the door knows: it lists them when it cannot guess what was meant.
fn known_at_the_door(id: &str) -> BTreeSet<String> {
    let refusal = at_the_door(id, br#"{"qqqqqqqqqqqqqqqqqqqqqqqq":1}"#).unwrap_err();
    let unknown = refusal.errors.iter().find(|error| error.code == "unknown-field").unwrap();
    let (_, names) = unknown.message.split_once("known are ").unwrap();
    names.split(", ").map(ToOwned::to_owned).collect()
}

#[test]
fn the_document_knows_exactly_the_fields_that_the_door_knows() {
    let document = document();
    for id in [
        "enqueue",
        "enqueue_bulk",
        "claim",
        "claim_bulk",
        "checkpoint",
        "retry",
        "discard",
        "cancel",
        "force_fail",
        "unblock",
        "put_type",
        "put_queue",
        "pause_queue",
        "resume_queue",
        "drain_queue",
        "put_limit",
        "open_limit",
        "acknowledge_alert",
    ] {
        let route = routes().find(|route| route.id == id).unwrap();
        let schema = &document["components"]["schemas"][route.body.unwrap().schema];
        let mut known = known_at_the_door(id);
        // Accepted but not part of the body: what an answer shows besides, and who makes the call.
        for aside in ["configured", "updated_at", "counts", "oldest_ready_age_seconds"] {
            if id == "put_type" {
                known.remove(aside);
            }
        }
        for aside in ["running", "partitions", "throttled", "uses"] {
            if id == "put_limit" {
                known.remove(aside);
            }
        }
        if id == "checkpoint" {
            known.remove("worker_id");
        }
        assert_eq!(known, properties(&document, schema), "{id}");
    }
}

#[test]
fn parameters_are_those_that_the_door_knows() {
    let door = door();
    let documented = |id: &str| {
        let route = routes().find(|route| route.id == id).unwrap();
        route.params.iter().map(|param| param.name.to_owned()).collect::<BTreeSet<_>>()
    };
    let known = |refusal: Refusal| {
        let (_, names) = refusal.errors[0].message.split_once("known are ").unwrap();
        names.split(", ").map(ToOwned::to_owned).collect::<BTreeSet<_>>()
    };
    let nonsense = "qqqqqqqqqqqqqqqqqqqqqqqq";
    assert_eq!(documented("list_jobs"), known(door.jobs_query(nonsense).unwrap_err()));
    assert_eq!(documented("list_review"), known(door.review_query(nonsense).unwrap_err()));
    assert_eq!(documented("get_job"), known(door.job_query(nonsense).unwrap_err()));
    assert_eq!(documented("list_attempts"), known(door.attempts_query(nonsense).unwrap_err()));
    assert_eq!(documented("list_alerts"), known(door.alerts_query(nonsense).unwrap_err()));
    assert_eq!(documented("audit"), known(door.audit_query(nonsense).unwrap_err()));
    assert_eq!(documented("readyz"), known(door.readyz_query(nonsense).unwrap_err()));
    assert_eq!(documented("delete_job"), known(door.delete(nonsense, None).unwrap_err()));
    for id in ["list_types", "list_limits", "list_queues", "list_workers"] {
        assert_eq!(documented(id), known(door.names_query(nonsense).unwrap_err()));
    }
    let with_params = routes().filter(|route| !route.params.is_empty()).count();
    assert_eq!(documented("enqueue_bulk"), known(door.stream_query(nonsense).unwrap_err()));
    assert_eq!(with_params, 13);
    assert_eq!(door.jobs_query(""), Ok(query::JobsQuery::default()));
}

#[test]
fn payloads_are_any_json() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(schemas["Json"].get("type"), None);
    assert_eq!(schemas["EnqueueRequest"]["required"], serde_json::json!(["type"]));
    assert_eq!(
        schemas["Status"]["enum"],
        serde_json::json!(["pending", "running", "completed", "failed", "cancelled"])
    );
    assert_eq!(schemas["Time"]["format"], "date-time");
}

#[test]
fn links_of_a_claim_lead_to_operations_that_take_their_bodies() {
    let document = document();
    let links = &document["paths"]["/jobs/claim"]["post"]["responses"]["200"]["links"];
    let links = links.as_object().unwrap();
    assert_eq!(links.len(), 5);
    for link in links.values() {
        let route = routes().find(|route| link["operationId"] == route.id).unwrap();
        assert!(route.path.contains("{id}"), "{link}");
        let body = link["requestBody"].to_string();
        assert_eq!(at_the_door(route.id, body.as_bytes()), Ok(Vec::new()), "{link}");
    }
}

/// A repeatable sequence of numbers that look random (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }
}

#[test]
fn no_body_however_broken_makes_the_door_panic() {
    const BITS: [&[u8]; 12] = [
        b"\"",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\\ud800",
        b"\\",
        b"\0",
        b"\xFF",
        b"1e999",
        b"null",
        b"\xEF\xBB\xBF",
    ];
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for route in routes() {
        let Some(body) = route.body else { continue };
        let whole = (body.example)().to_string().into_bytes();
        for end in 0..whole.len() {
            at_the_door(route.id, &whole[..end]).ok();
        }
        for _ in 0..2000 {
            let mut broken = whole.clone();
            for _ in 0..=dice.below(3) {
                let place = dice.below(broken.len());
                let end = broken.len().min(place + dice.below(4));
                broken.splice(place..end, BITS[dice.below(BITS.len())].iter().copied());
            }
            at_the_door(route.id, &broken).ok();
        }
    }
}
