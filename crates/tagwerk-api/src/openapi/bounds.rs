//! The limits of the door in the words of JSON Schema: what a body or a query may hold at most.
//!
//! Guarantees: every bound is taken from the [`DoorLimits`] that the door itself applies; a test tries both sides of
//! each one at the door. `maxLength` counts characters where the door counts bytes of UTF-8, so a text of other than
//! ASCII characters can be refused although the schema lets it pass; never the other way round.
//!
//! Deliberately absent: what a schema cannot say. Two fields that exclude each other, the size and the nesting of any
//! JSON, instants that lie too far ahead.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use super::route::ParamKind;
use crate::Seconds;
use crate::door::{DoorLimits, TextRule};

/// Bodies in which an unknown field is an error, with everything below them that only they use.
const CLOSED: [&str; 23] = [
    "AckRequest",
    "BulkClaimRequest",
    "BulkEnqueueRequest",
    "CancelRequest",
    "CheckpointRequest",
    "ClaimRequest",
    "DiscardRequest",
    "DrainRequest",
    "EffectAbortRequest",
    "EffectBeginRequest",
    "EffectFinishRequest",
    "EnqueueRequest",
    "ForceFailRequest",
    "OpenLimitRequest",
    "PauseRequest",
    "QueueSettings",
    "RateSettings",
    "Reserve",
    "ResumeRequest",
    "RetryRequest",
    "RetrySettings",
    "Subject",
    "UnblockRequest",
];

/// Those and the open ones: every schema whose fields the door reads.
const OPEN: [&str; 12] = [
    "BulkHeartbeatRequest",
    "CompleteRequest",
    "FailRequest",
    "HeartbeatRequest",
    "HeldLease",
    "LimitSettings",
    "Progress",
    "ReleaseRequest",
    "ReportBulkRequest",
    "ReportEntry",
    "Throttle",
    "TypeSettings",
];

/// Writes the bounds into the schemas.
pub(super) fn apply(schemas: &mut Map<String, Value>, limits: &DoorLimits) {
    flatten_bulk_claim(schemas);
    for name in CLOSED.iter().chain(&OPEN) {
        let Some(schema) = schemas.get_mut(*name) else { continue };
        if CLOSED.contains(name) {
            schema["additionalProperties"] = json!(false);
        }
        let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (field, value) in fields.into_iter().flatten() {
            merge(value, &of_field(limits, name, field));
        }
    }
    if let Some(priority) = schemas.get_mut("Priority") {
        merge(priority, &whole(&(0..=i64::from(limits.priority_max))));
    }
    if let Some(named) = schemas.get_mut("Assumed").and_then(|assumed| assumed["oneOf"].get_mut(1)) {
        let rule = json!({"propertyNames": text(limits.effect_rule()), "minProperties": 1, "maxProperties": limits.effects_per_job});
        merge(named, &rule);
    }
    close_settings(schemas, ("TypeSettings", "TypeInfo"), ("type", limits.type_rule()));
    close_settings(schemas, ("LimitSettings", "LimitInfo"), ("name", limits.queue_rule()));
}

/// The claim of one job with one more field. Included with `allOf` it could not be closed.
fn flatten_bulk_claim(schemas: &mut Map<String, Value>) {
    let mut flat = schemas.get("ClaimRequest").cloned().unwrap_or_default();
    let Some(bulk) = schemas.get_mut("BulkClaimRequest") else { return };
    let own = &bulk["allOf"][1]["properties"];
    merge(&mut flat["properties"], own);
    flat["description"] = bulk["description"].take();
    *bulk = flat;
}

/// Besides the settings, `PUT` takes what `GET` shows with them, and looks only at the name. The answer includes the
/// settings with `allOf`, so only a rule about names can close both.
fn close_settings(
    schemas: &mut Map<String, Value>,
    (of_settings, of_info): (&str, &str),
    (name, rule): (&str, TextRule),
) {
    let names_of = |schema: &Value| {
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let info = schemas.get(of_info).and_then(|info| info["allOf"].as_array()).cloned().unwrap_or_default();
    let Some(settings) = schemas.get_mut(of_settings) else { return };
    let mut names: Vec<String> = info.iter().flat_map(names_of).chain(names_of(settings)).collect();
    if of_settings == "TypeSettings" {
        names.push("updated_at".to_owned());
    }
    names.sort();
    names.dedup();
    settings["propertyNames"] = json!({"enum": names});
    let mut own = text(rule);
    own["type"] = json!(["string", "null"]);
    own["description"] = json!(format!("Need not be sent; if it is, it must be the {name} of the path."));
    settings["properties"][name] = own;
}

/// What the door asks of a field of a body.
fn of_field(limits: &DoorLimits, schema: &str, field: &str) -> Value {
    match (schema, field) {
        ("HeldLease" | "ReportEntry", "id") => whole(&(1..=limits.id_max)),
        ("Subject", "version") | (_, "seen_version" | "done" | "total") => whole(&(0..=limits.id_max)),
        ("ClaimRequest" | "BulkClaimRequest", "worker_id") => text(limits.worker_rule()),
        ("Progress", "message") => text(limits.progress_rule()),
        ("CompleteRequest" | "ReportEntry", "enqueue") => json!({"maxItems": limits.follow_ups_max}),
        (_, "type") => text(limits.type_rule()),
        (_, "queue") => text(limits.queue_rule()),
        ("Subject", "kind" | "id")
        | ("EffectBeginRequest", "key")
        | (_, "idempotency_key" | "correlation_id" | "fair_key" | "ordering_key") => text(limits.key_rule()),
        (_, "traceparent") => text(limits.traceparent_rule()),
        (_, "request_id") => text(limits.request_rule()),
        (_, "reason" | "note" | "owner") => text(limits.prose_rule()),
        ("QueueSettings", "max_running") | ("Reserve", "slots") => count(&limits.queue_max_running),
        ("QueueSettings", "max_depth") => whole(&limits.queue_max_depth),
        ("OpenLimitRequest", "partition") => text(limits.partition_rule()),
        (_, "by") => text(limits.by_rule()),
        (_, "max_retries") => count(&limits.max_retries),
        (_, "max_lease_losses") => count(&limits.max_lease_losses),
        (_, "payload_max_bytes") => count(&limits.payload_sizes()),
        (_, "max_jobs") => count(&limits.claim_jobs),
        (_, "delay_seconds" | "retry_after_seconds") => seconds(&limits.delay_ms),
        (_, "max_age_seconds") => seconds(&limits.max_age_ms),
        (_, "lease_seconds") => seconds(&limits.lease_ms),
        (_, "timeout_seconds") => seconds(&limits.timeout_ms),
        (_, "idempotency_ttl_seconds") => seconds(&limits.ttl_ms),
        (_, "wait_seconds") => seconds(&(0..=limits.wait_max_ms)),
        (_, "base_seconds" | "cap_seconds") => seconds(&limits.retry_delay_ms),
        (_, "factor") => {
            json!({"minimum": limits.retry_factor.start(), "maximum": limits.retry_factor.end()})
        }
        (_, "limits") => texts(limits.limits_per_job, &limit(limits)),
        ("Throttle", "limit") => limit(limits),
        (_, "for_seconds") => seconds(&limits.throttle_ms),
        (_, "max_running") => count(&limits.limit_running),
        ("RateSettings", "count") => count(&limits.rate_count),
        (_, "per_seconds") => seconds(&limits.rate_per_ms),
        (_, "queues") => texts(limits.claim_names_max, &text(limits.queue_rule())),
        (_, "types") => texts(limits.claim_names_max, &text(limits.type_rule())),
        (_, "jobs") => json!({"maxItems": limits.bulk_jobs_max}),
        (_, "reports" | "leases") => json!({"maxItems": limits.reports_max}),
        _ => Value::Null,
    }
}

/// What the door asks of a parameter of a query or a path.
pub(super) fn of_param(limits: &DoorLimits, name: &str, kind: ParamKind) -> Value {
    match (name, kind) {
        // In lists of names it is a name, in the others a number.
        ("after", ParamKind::Text) => text(limits.last_name_rule()),
        ("after" | "seen_version", _) => whole(&(0..=limits.id_max)),
        ("limit", _) => count(&limits.list_page),
        ("wait_seconds", _) => seconds(&(0..=limits.wait_max_ms)),
        ("id", _) => whole(&(1..=limits.id_max)),
        ("type", _) => text(limits.type_rule()),
        ("effect", _) => text(limits.effect_rule()),
        ("queue" | "name", _) => text(limits.queue_rule()),
        ("subject_kind" | "subject_id" | "correlation_id" | "idempotency_key", _) => text(limits.key_rule()),
        _ => Value::Null,
    }
}

/// What the door asks of a header.
pub(super) fn of_header(limits: &DoorLimits, name: &str) -> Value {
    match name {
        // Space around it and the quotes of the IETF draft do not count; something must be left.
        "Idempotency-Key" => {
            json!({"minLength": 1, "maxLength": limits.key_max_bytes, "pattern": r#"[^\s"]"#})
        }
        "If-Match" => json!({"pattern": r#"^(W/)?([0-9]{1,16}|"[0-9]{1,16}")$"#}),
        _ => Value::Null,
    }
}

fn text(rule: TextRule) -> Value {
    let mut keywords = json!({"minLength": 1, "maxLength": rule.max_bytes});
    if let Some(pattern) = rule.alphabet.pattern() {
        keywords["pattern"] = json!(pattern);
    }
    keywords
}

/// A limit as a job names it. The lengths are those of its two parts.
fn limit(limits: &DoorLimits) -> Value {
    json!({"pattern": limits.limit_pattern()})
}

fn texts(max: usize, item: &Value) -> Value {
    let mut items = json!({"type": "string"});
    merge(&mut items, item);
    json!({"minItems": 1, "maxItems": max, "items": items})
}

fn whole(range: &RangeInclusive<i64>) -> Value {
    json!({"minimum": range.start(), "maximum": range.end()})
}

fn count(range: &RangeInclusive<u32>) -> Value {
    json!({"minimum": range.start(), "maximum": range.end()})
}

fn seconds(range: &RangeInclusive<i64>) -> Value {
    json!({"minimum": Seconds::from_ms(*range.start()), "maximum": Seconds::from_ms(*range.end())})
}

/// Adds the members of one object to another.
pub(super) fn merge(into: &mut Value, from: &Value) {
    let Some(into) = into.as_object_mut() else { return };
    for (name, value) in from.as_object().into_iter().flatten() {
        into.insert(name.clone(), value.clone());
    }
}
