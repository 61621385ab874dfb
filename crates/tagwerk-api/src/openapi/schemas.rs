//! The schemas of the document: every wire type that a route names, and whatever those name.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::bounds;
use crate::StreamResults;
use crate::door::DoorLimits;
use crate::problem::Problem;
use crate::{answer, request};

type Found = Vec<(String, RefOr<Schema>)>;

fn add<T: ToSchema>(found: &mut Found) {
    found.push((T::name().into_owned(), T::schema()));
    T::schemas(found);
}

/// All schemas by name, with the limits of the door.
pub(super) fn all(limits: &DoorLimits) -> Map<String, Value> {
    let mut found = Vec::new();
    for add_roots in [requests, answers] {
        add_roots(&mut found);
    }
    add::<Problem>(&mut found);
    let mut schemas = found.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    bounds::apply(&mut schemas, limits);
    schemas
}

fn requests(found: &mut Found) {
    add::<request::EnqueueRequest>(found);
    add::<request::BulkEnqueueRequest>(found);
    add::<request::ClaimRequest>(found);
    add::<request::BulkClaimRequest>(found);
    add::<request::CompleteRequest>(found);
    add::<request::FailRequest>(found);
    add::<request::ReleaseRequest>(found);
    add::<request::HeartbeatRequest>(found);
    add::<request::BulkHeartbeatRequest>(found);
    add::<request::CheckpointRequest>(found);
    add::<request::EffectBeginRequest>(found);
    add::<request::EffectFinishRequest>(found);
    add::<request::EffectAbortRequest>(found);
    add::<request::ReportBulkRequest>(found);
    add::<request::CancelRequest>(found);
    add::<request::RetryRequest>(found);
    add::<request::DiscardRequest>(found);
    add::<request::ForceFailRequest>(found);
    add::<request::UnblockRequest>(found);
    add::<request::TypeSettings>(found);
    add::<request::QueueSettings>(found);
    add::<request::PauseRequest>(found);
    add::<request::ResumeRequest>(found);
    add::<request::DrainRequest>(found);
    add::<request::LimitSettings>(found);
    add::<request::OpenLimitRequest>(found);
    add::<request::AckRequest>(found);
}

fn answers(found: &mut Found) {
    add::<answer::Job>(found);
    add::<answer::Deleted>(found);
    add::<answer::EnqueueAnswer>(found);
    add::<answer::CompletedJob>(found);
    add::<answer::Enqueued>(found);
    add::<answer::BulkEnqueueAnswer>(found);
    add::<answer::RefusedLine>(found);
    add::<answer::StoredLine>(found);
    add::<answer::StreamEnd>(found);
    add::<StreamResults>(found);
    add::<answer::JobsPage>(found);
    add::<answer::ReviewPage>(found);
    add::<answer::AttemptsPage>(found);
    add::<answer::AuditPage>(found);
    add::<answer::AlertsPage>(found);
    add::<answer::Explain>(found);
    add::<answer::ClaimedJob>(found);
    add::<answer::BulkClaimAnswer>(found);
    add::<answer::EffectAnswer>(found);
    add::<answer::HeartbeatAnswer>(found);
    add::<answer::BulkHeartbeatAnswer>(found);
    add::<answer::ReportBulkAnswer>(found);
    add::<answer::QueueInfo>(found);
    add::<answer::QueueList>(found);
    add::<answer::TypeInfo>(found);
    add::<answer::TypeList>(found);
    add::<answer::LimitInfo>(found);
    add::<answer::LimitList>(found);
    add::<answer::LimitDeleted>(found);
    add::<answer::WorkerList>(found);
    add::<answer::Stats>(found);
    add::<answer::Livez>(found);
    add::<answer::Readyz>(found);
}
