//! Puts the document together.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::route::{Answer, Group, Header, Param, ParamKind, Route, Shape};
use super::{bounds, routes, schemas};
use crate::door::DoorLimits;
use crate::headers::NDJSON;
use crate::problem::{Code, Problem, markdown};

/// The document: `OpenAPI` 3.1.0, of a server with these limits.
#[must_use]
pub fn document(limits: &DoorLimits) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let operations = paths.entry(route.path).or_insert_with(|| Value::Object(Map::new()));
        if let Some(operations) = operations.as_object_mut() {
            operations.insert(route.method.name().to_ascii_lowercase(), operation(route, limits));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tagwerk",
            "version": env!("CARGO_PKG_VERSION"),
            "description": about(),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7070", "description": "The default address."}],
        "tags": Group::ALL.map(|group| json!({"name": group.name(), "description": about_group(group)})),
        "paths": paths,
        "components": {
            "schemas": schemas::all(limits),
            "examples": problem_examples(),
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "An API token, tw_…. Needed as soon as the store has one; without any, local callers need none.",
            }},
        },
        "security": [{}, {"token": []}],
    })
}

fn about() -> String {
    format!(
        "A persistent job queue over HTTP. JSON in, JSON out; times are RFC 3339 in UTC with milliseconds, lengths of \
         time are seconds and may have fractions. Unknown fields are refused, except in reports (`complete`, `fail`, \
         `release`, `heartbeat`, single or in bulk), which ignore them and name them in the header `Tagwerk-Ignored`. Errors are problems of RFC \
         9457 with one of these codes:\n\n{}",
        markdown()
    )
}

const fn about_group(group: Group) -> &'static str {
    match group {
        Group::Jobs => "Enqueue jobs and look at them.",
        Group::Workers => "Claim jobs, keep them, report.",
        Group::Review => "Decide about jobs: retry, discard, cancel, force-fail, unblock, erase.",
        Group::Operating => "Queues, types, workers, figures.",
        Group::Server => "Health and documentation.",
    }
}

fn operation(route: &Route, limits: &DoorLimits) -> Value {
    let path = path_names(route.path).map(|name| path_param(name, limits));
    let query = route.params.iter().map(|param| query_param(param, limits));
    let headers = route.headers.iter().map(|header| header_param(header, limits));
    let mut operation = json!({
        "operationId": route.id,
        "tags": [route.group.name()],
        "summary": route.summary,
        "description": route.about,
        "parameters": path.chain(query).chain(headers).collect::<Vec<Value>>(),
        "responses": responses(route),
    });
    if let Some(body) = route.body {
        operation["requestBody"] = json!({
            "required": is_body_required(route),
            "content": {"application/json": {"schema": reference(body.schema), "example": (body.example)()}},
        });
    }
    if let Some(lines) = route.lines {
        let (sent, answered) = (lines.example)();
        let one = |schemas: &[&str]| match schemas {
            [only] => reference(only),
            several => json!({"oneOf": several.iter().map(|schema| reference(schema)).collect::<Vec<_>>()}),
        };
        // OpenAPI 3.1 has no word for the lines of a stream.
        let media = |schemas: &[&str], example: String| json!({"schema": {"type": "string"}, "x-line-schema": one(schemas), "example": example});
        operation["requestBody"]["content"][NDJSON] = media(&[lines.schema], sent);
        operation["responses"]["200"]["content"][NDJSON] = media(lines.answers, answered);
        operation["requestBody"]["description"] = lines.about.into();
    }
    operation
}

/// Reports, cancel, settings and most controls of queues have no field that must be there, so an empty body will do.
fn is_body_required(route: &Route) -> bool {
    !matches!(
        route.id,
        "complete"
            | "fail"
            | "release"
            | "cancel"
            | "put_type"
            | "put_limit"
            | "open_limit"
            | "acknowledge_alert"
            | "put_queue"
            | "resume_queue"
            | "drain_queue"
    )
}

/// `id` of `/jobs/{id}`.
fn path_names(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_param(name: &str, limits: &DoorLimits) -> Value {
    let (kind, mut schema, about) = match name {
        "id" => (ParamKind::Integer, json!({"type": "integer", "format": "int64"}), "The job's id."),
        "name" => (ParamKind::Text, json!({"type": "string"}), "Name of the limit, without a partition."),
        "effect" => (ParamKind::Text, json!({"type": "string"}), "Name of the effect within the job."),
        _ => (ParamKind::Text, json!({"type": "string"}), "Name of the type, percent-encoded."),
    };
    bounds::merge(&mut schema, &bounds::of_param(limits, name, kind));
    json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema})
}

fn query_param(param: &Param, limits: &DoorLimits) -> Value {
    let mut schema = match param.kind {
        ParamKind::Text => json!({"type": "string"}),
        ParamKind::Integer => json!({"type": "integer", "format": "int64"}),
        ParamKind::Seconds => reference("Seconds"),
        ParamKind::Time => reference("Time"),
        ParamKind::Flag => json!({"type": "string", "enum": ["", "true", "1", "false", "0"]}),
        ParamKind::Named(name) => reference(name),
    };
    bounds::merge(&mut schema, &bounds::of_param(limits, param.name, param.kind));
    json!({"name": param.name, "in": "query", "required": false, "description": param.about, "schema": schema})
}

fn header_param(header: &Header, limits: &DoorLimits) -> Value {
    let mut schema = json!({"type": "string"});
    bounds::merge(&mut schema, &bounds::of_header(limits, header.name));
    json!({
        "name": header.name,
        "in": "header",
        "required": false,
        "description": header.about,
        "schema": schema,
    })
}

fn responses(route: &Route) -> Value {
    let mut responses: Map<String, Value> = Map::new();
    for answer in route.answers {
        let mut response = response(answer);
        if route.id == "claim" {
            response["links"] = links_of_a_claim();
        }
        responses.insert(answer.status.to_string(), response);
    }
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in route.all_problems() {
        by_status.entry(code.status()).or_default().push(code);
    }
    for (status, codes) in by_status {
        // 503 of /readyz is its own answer.
        responses.entry(status.to_string()).or_insert_with(|| problems(&codes));
    }
    Value::Object(responses)
}

fn response(answer: &Answer) -> Value {
    let (media, schema) = match answer.shape {
        Shape::Of(name) => ("application/json", reference(name)),
        Shape::OrNull(name) => ("application/json", json!({"oneOf": [reference(name), {"type": "null"}]})),
        Shape::Document => ("application/json", json!({"type": "object"})),
        Shape::Text(media) => (media, json!({"type": "string"})),
    };
    let mut content = json!({"schema": schema});
    if let Some(example) = answer.example {
        content["example"] = example();
    }
    let mut response = json!({"description": answer.about, "content": {media: content}});
    let mut sent = answer.headers.to_vec();
    if matches!(answer.shape, Shape::Of("Job" | "Enqueued" | "Deleted") | Shape::OrNull("ClaimedJob")) {
        sent.push(ETAG);
    }
    if !sent.is_empty() {
        response["headers"] = headers(&sent);
    }
    response
}

/// What to do with a claimed job, for tools that follow links.
fn links_of_a_claim() -> Value {
    let lease = "$response.body#/lease";
    let links = [
        ("complete", json!({"lease": lease, "result": {"done": true}})),
        ("fail", json!({"lease": lease, "error": "the address bounced", "class": "transient"})),
        ("release", json!({"lease": lease})),
        ("heartbeat", json!({"lease": lease})),
        ("checkpoint", json!({"lease": lease, "checkpoint": {"page": 7}})),
    ];
    let link = |(operation, body)| {
        let parameters = json!({"id": "$response.body#/id"});
        let link = json!({"operationId": operation, "parameters": parameters, "requestBody": body});
        (String::from(operation), link)
    };
    Value::Object(links.into_iter().map(link).collect())
}

/// Sent with every single job.
const ETAG: Header = Header { name: "ETag", about: "The job's version in quotes, as `If-Match` takes it." };

fn headers(headers: &[Header]) -> Value {
    let header = |header: &Header| {
        (header.name.to_owned(), json!({"description": header.about, "schema": {"type": "string"}}))
    };
    Value::Object(headers.iter().map(header).collect())
}

fn problems(codes: &[Code]) -> Value {
    let names: Vec<String> = codes.iter().map(|code| format!("`{}`", code.name())).collect();
    let examples: Map<String, Value> = codes
        .iter()
        .map(|code| {
            (code.name().to_owned(), json!({"$ref": format!("#/components/examples/{}", code.name())}))
        })
        .collect();
    let mut response = json!({
        "description": names.join(", "),
        "content": {"application/problem+json": {"schema": reference("Problem"), "examples": examples}},
    });
    if codes.iter().any(|code| matches!(code.status(), 429 | 503)) {
        response["headers"] =
            headers(&[Header { name: "Retry-After", about: "Seconds after which to try again." }]);
    }
    response
}

/// One example per code; every answer that can carry it refers to it.
fn problem_examples() -> Value {
    let example = |code: &Code| (code.name().to_owned(), json!({"value": Problem::of(*code)}));
    Value::Object(Code::ALL.iter().map(example).collect())
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}
