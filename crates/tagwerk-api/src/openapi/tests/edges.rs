//! Every bound that the document gives is tried at the door: the last value passes, the first beyond is refused.

use serde_json::{Value, json};

use super::{at_the_door, document};
use crate::door::tests::door;
use crate::openapi::routes;

/// The schema behind a reference; of "this or null", this. Keywords beside are kept.
fn resolved(document: &Value, schema: &Value) -> Value {
    let mut beside = schema.clone();
    let inner = match (schema["$ref"].as_str(), schema["oneOf"].as_array()) {
        (Some(name), _) => document.pointer(name.trim_start_matches('#')).unwrap().clone(),
        (None, Some(either)) if either.iter().any(|one| one["type"] == "null") => {
            either.iter().find(|one| one["type"] != "null").unwrap().clone()
        }
        _ => return beside,
    };
    let inner = resolved(document, &inner);
    for (name, value) in inner.as_object().unwrap() {
        if beside.get(name).is_none_or(Value::is_null) {
            beside[name] = value.clone();
        }
    }
    beside
}

/// Values at the bounds that pass, and values beyond that do not.
fn edges(document: &Value, schema: &Value) -> (Vec<Value>, Vec<Value>) {
    let (mut inside, mut beyond) = (Vec::new(), Vec::new());
    for (name, step) in [("minimum", -1.0), ("maximum", 1.0)] {
        if let Some(bound) = schema.get(name) {
            inside.push(bound.clone());
            let past = bound.as_f64().unwrap() + step;
            let whole = schema["type"].to_string().contains("integer");
            #[expect(clippy::cast_possible_truncation, reason = "whole numbers below 2^53")]
            beyond.push(if whole { json!(past as i64) } else { json!(past) });
        }
    }
    let times = |bound: &Value| usize::try_from(bound.as_u64().unwrap()).unwrap();
    if let Some(bound) = schema.get("minLength") {
        inside.push(json!("a".repeat(times(bound))));
        beyond.push(json!("a".repeat(times(bound) - 1)));
    }
    if let Some(bound) = schema.get("maxLength") {
        inside.push(json!("a".repeat(times(bound))));
        beyond.push(json!("a".repeat(times(bound) + 1)));
    }
    let entry = || sample(document, &schema["items"]);
    if let Some(bound) = schema.get("minItems") {
        inside.push(Value::Array(vec![entry(); times(bound)]));
        beyond.push(Value::Array(vec![entry(); times(bound) - 1]));
    }
    if let Some(bound) = schema.get("maxItems") {
        inside.push(Value::Array(vec![entry(); times(bound)]));
        beyond.push(Value::Array(vec![entry(); times(bound) + 1]));
    }
    (inside, beyond)
}

/// Something that the schema of a list's entries allows.
fn sample(document: &Value, items: &Value) -> Value {
    let schema = resolved(document, items);
    match schema["properties"].as_object() {
        None => json!("a"),
        Some(fields) => {
            let needed = schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
            needed
                .map(|name| {
                    let field = resolved(document, &fields[name]);
                    let value = match (field["type"].as_str(), field["enum"].as_array()) {
                        (_, Some(names)) => names[0].clone(),
                        (Some("integer"), None) => json!(1),
                        _ => json!("a"),
                    };
                    (name.to_owned(), value)
                })
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
    }
}

/// What the door says about a field when the example of a body is sent with this value for it.
fn complaint(route: &crate::openapi::Route, path: &[String], value: &Value) -> Option<String> {
    let mut body = (route.body.unwrap().example)();
    let (last, outer) = path.split_last().unwrap();
    let mut place = &mut body;
    for name in outer {
        if name == "[0]" {
            // One entry is enough; an example of a report has several outcomes, and only some read the field.
            return bulk_complaint(route, path, value);
        }
        place = &mut place[name.as_str()];
    }
    place[last.as_str()] = value.clone();
    let refusal = at_the_door(route.id, body.to_string().as_bytes()).err()?;
    let field = path.join(".");
    refusal
        .errors
        .iter()
        .find(|error| error.field == field && error.code != "conflict")
        .map(|error| error.code.clone())
}

/// The same for a field of an entry of a list.
fn bulk_complaint(route: &crate::openapi::Route, path: &[String], value: &Value) -> Option<String> {
    let outcome = match path[2].as_str() {
        "error" | "class" | "retry_after_seconds" => "failed",
        "delay_seconds" | "reason" => "released",
        "progress" => "heartbeat",
        _ => "completed",
    };
    let job = json!({"type": "t", "subject": {"kind": "k", "id": "1"}});
    let mut entry = match path[0].as_str() {
        "jobs" | "enqueue" => job.clone(),
        "leases" => json!({"id": 1, "lease": "t"}),
        _ => json!({"id": 1, "lease": "t", "outcome": outcome}),
    };
    let mut place = &mut entry;
    for name in &path[2..] {
        if name == "[0]" {
            *place = json!([job]);
            place = &mut place[0];
        } else {
            place = &mut place[name.as_str()];
        }
    }
    *place = value.clone();
    let body = json!({path[0].as_str(): [entry]});
    let refusal = at_the_door(route.id, body.to_string().as_bytes()).err()?;
    let field = path.join(".").replace(".[0]", "[0]");
    refusal.errors.iter().find(|error| error.field == field).map(|error| error.code.clone())
}

/// Every bounded field below a schema.
fn walk(document: &Value, schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, Value)>) {
    let schema = resolved(document, schema);
    if let Some(fields) = schema["properties"].as_object() {
        for (name, field) in fields {
            path.push(name.clone());
            walk(document, field, path, found);
            path.pop();
        }
        return;
    }
    let (inside, beyond) = edges(document, &schema);
    if !(inside.is_empty() && beyond.is_empty()) {
        found.push((path.clone(), schema.clone()));
    }
    if schema["items"]["$ref"].is_string() {
        path.push("[0]".to_owned());
        walk(document, &schema["items"], path, found);
        path.pop();
    }
}

#[test]
fn bounds_of_bodies_are_those_of_the_door() {
    let document = document();
    let mut tried = 0;
    for route in routes().filter(|route| route.body.is_some()) {
        let root = json!({"$ref": format!("#/components/schemas/{}", route.body.unwrap().schema)});
        let mut found = Vec::new();
        walk(&document, &root, &mut Vec::new(), &mut found);
        for (path, schema) in found {
            let (inside, beyond) = edges(&document, &schema);
            for value in inside {
                let said = complaint(route, &path, &value);
                assert_eq!(said, None, "{} {path:?} {:.80}", route.id, value.to_string());
            }
            for value in beyond {
                tried += 1;
                let said = complaint(route, &path, &value);
                assert!(said.is_some(), "{} {path:?} {:.80} passes", route.id, value.to_string());
            }
        }
    }
    assert!(tried > 150, "only {tried} bounds were tried");
}

#[test]
fn bounds_of_queries_are_those_of_the_door() {
    let document = document();
    let door = door();
    let mut tried = 0;
    for route in routes() {
        for param in route.params {
            let method = route.method.name().to_ascii_lowercase();
            let params = document["paths"][route.path][method]["parameters"].as_array().unwrap();
            let given = params.iter().find(|given| given["name"] == param.name).unwrap();
            let schema = resolved(&document, &given["schema"]);
            let ask = |value: &Value| {
                let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                let query = format!("{}={text}", param.name);
                match route.id {
                    "list_jobs" => door.jobs_query(&query).map(|_| ()),
                    "list_review" => door.review_query(&query).map(|_| ()),
                    "get_job" => door.job_query(&query).map(|_| ()),
                    "list_attempts" => door.attempts_query(&query).map(|_| ()),
                    "list_alerts" => door.alerts_query(&query).map(|_| ()),
                    "audit" => door.audit_query(&query).map(|_| ()),
                    "readyz" => door.readyz_query(&query).map(|_| ()),
                    "delete_job" => door.delete(&query, None).map(|_| ()),
                    "enqueue_bulk" => door.stream_query(&query).map(|_| ()),
                    _ => door.names_query(&query).map(|_| ()),
                }
            };
            for name in schema["enum"].as_array().into_iter().flatten() {
                assert_eq!(ask(name), Ok(()), "{} {} {name}", route.id, param.name);
            }
            let (inside, beyond) = edges(&document, &schema);
            for value in inside {
                assert_eq!(ask(&value), Ok(()), "{} {} {value}", route.id, param.name);
            }
            for value in beyond {
                tried += 1;
                assert!(ask(&value).is_err(), "{} {} {value} passes", route.id, param.name);
            }
        }
    }
    assert!(tried > 40, "only {tried} bounds were tried");
}

#[test]
fn a_body_that_refuses_unknown_fields_says_so() {
    let document = document();
    let unknown = br#"{"qqqqqqqqqqqqqqqqqqqqqqqq":1}"#;
    for route in routes().filter(|route| route.body.is_some()) {
        let schema = &document["components"]["schemas"][route.body.unwrap().schema];
        let closed = schema["additionalProperties"] == false || schema.get("propertyNames").is_some();
        let refused = at_the_door(route.id, unknown)
            .is_err_and(|refusal| refusal.errors.iter().any(|error| error.code == "unknown-field"));
        assert_eq!(closed, refused, "{}", route.id);
    }
    let names = &document["components"]["schemas"]["TypeSettings"]["propertyNames"]["enum"];
    let body = crate::openapi::routes().find(|route| route.id == "put_type").unwrap().body.unwrap();
    let mut settings = (body.example)();
    for name in names.as_array().unwrap() {
        let name = name.as_str().unwrap();
        if settings.get(name).is_none() && name != "type" {
            settings[name] = Value::Null;
        }
    }
    assert_eq!(at_the_door("put_type", settings.to_string().as_bytes()), Ok(Vec::new()));
}
