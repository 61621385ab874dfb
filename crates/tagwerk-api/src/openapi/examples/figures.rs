//! Examples of what the server tells about queues, types, workers and itself.

use serde_json::Value;

use super::{ID, at, seconds, settings, value, worker};
use crate::answer::{
    AuditEntry, AuditPage, CommitStats, Counts, LimitDeleted, LimitInfo, LimitList, LimitUse, Livez,
    QueueInfo, QueueList, QueuePause, Readyz, ReadyzCheck, ServiceStats, Stats, StoreStats, Totals, TypeInfo,
    TypeList, WorkerInfo, WorkerJob, WorkerList,
};
use crate::request::{
    DrainRequest, LimitSettings, OpenLimitRequest, PauseRequest, Priority, QueueSettings, RateSettings,
    Reserve, ResumeRequest, TypeSettings,
};
use crate::{LimitClosed, PriorityLabel, Seconds};

const COUNTS: Counts = Counts {
    enqueued: 120,
    pending: 4,
    blocked: 1,
    running: 2,
    completed: 100,
    failed: 1,
    cancelled: 3,
    pruned: 10,
};

fn typeinfo(settings: Option<TypeSettings>) -> TypeInfo {
    TypeInfo {
        job_type: "send-invoice".to_owned(),
        configured: settings.is_some(),
        settings: settings.unwrap_or_default(),
        counts: COUNTS,
        oldest_ready_age_seconds: Some(Seconds::from_ms(250)),
    }
}

pub(in crate::openapi) fn type_info() -> Value {
    value(&typeinfo(Some(settings())))
}

pub(in crate::openapi) fn type_info_bare() -> Value {
    value(&typeinfo(None))
}

pub(in crate::openapi) fn type_list() -> Value {
    value(&TypeList { types: vec![typeinfo(Some(settings()))], next: None })
}

fn limit_bounds() -> LimitSettings {
    let rate = RateSettings { count: 20, per_seconds: seconds(1), spread: None };
    LimitSettings { max_running: Some(5), rate: Some(rate) }
}

fn limit(uses: Option<Vec<LimitUse>>) -> LimitInfo {
    let rate = limit_bounds().rate.map(|rate| RateSettings { spread: Some(false), ..rate });
    let settings = LimitSettings { rate, ..limit_bounds() };
    let is_new = uses.as_ref().is_some_and(Vec::is_empty);
    let (running, partitions) = if is_new { (0, 0) } else { (5, 1) };
    LimitInfo { name: "crm".to_owned(), settings, running, partitions, throttled: 0, uses }
}

pub(in crate::openapi) fn limit_settings() -> Value {
    value(&limit_bounds())
}

pub(in crate::openapi) fn limit_info() -> Value {
    let used = LimitUse {
        partition: Some("tenant-42".to_owned()),
        running: 5,
        open: Some(0),
        closed: Some(LimitClosed::Full),
        opens_at: None,
    };
    value(&limit(Some(vec![used])))
}

pub(in crate::openapi) fn limit_info_new() -> Value {
    value(&limit(Some(Vec::new())))
}

pub(in crate::openapi) fn open_limit() -> Value {
    value(&OpenLimitRequest { partition: Some("tenant-42".to_owned()) })
}

pub(in crate::openapi) fn limit_list() -> Value {
    value(&LimitList { limits: vec![limit(None)], next: None })
}

pub(in crate::openapi) fn limit_deleted() -> Value {
    value(&LimitDeleted { name: "crm".to_owned(), deleted: true })
}

fn queue() -> QueueInfo {
    QueueInfo {
        queue: "mail".to_owned(),
        counts: COUNTS,
        oldest_ready_age_seconds: Some(Seconds::from_ms(250)),
        last_claim_age_seconds: Some(seconds(1)),
        settings: bounds(),
        paused: vec![QueuePause {
            reason: "CRM maintenance".to_owned(),
            by: Some("ann".to_owned()),
            since: at(30),
        }],
        draining: None,
        drained: false,
    }
}

fn bounds() -> QueueSettings {
    let reserve = Reserve { slots: 1, from_priority: Priority::Label(PriorityLabel::Critical) };
    QueueSettings { max_running: Some(4), reserve: Some(reserve), max_depth: Some(100_000) }
}

pub(in crate::openapi) fn queue_info() -> Value {
    value(&queue())
}

pub(in crate::openapi) fn queue_list() -> Value {
    value(&QueueList { queues: vec![queue()], next: None })
}

pub(in crate::openapi) fn queue_settings() -> Value {
    value(&bounds())
}

pub(in crate::openapi) fn pause() -> Value {
    value(&PauseRequest { reason: "CRM maintenance".to_owned(), by: Some("ann".to_owned()) })
}

pub(in crate::openapi) fn resume() -> Value {
    value(&ResumeRequest { reason: Some("CRM maintenance".to_owned()) })
}

pub(in crate::openapi) fn drain() -> Value {
    value(&DrainRequest { reason: Some("moving to another server".to_owned()), by: Some("ann".to_owned()) })
}

pub(in crate::openapi) fn worker_list() -> Value {
    let job = WorkerJob {
        id: ID,
        job_type: "send-invoice".to_owned(),
        queue: "mail".to_owned(),
        attempt: 1,
        claimed_at: at(31),
        lease_expires_at: at(91),
        progress: None,
    };
    let worker = WorkerInfo {
        worker_id: worker(),
        last_seen_at: Some(at(31)),
        last_claim_at: Some(at(31)),
        last_report_at: Some(at(30)),
        queues: Some(vec!["mail".to_owned()]),
        types: None,
        version: Some("tagwerk/0.1.0".to_owned()),
        running: 1,
        jobs: vec![job],
    };
    value(&WorkerList { workers: vec![worker], next: None })
}

pub(in crate::openapi) fn stats() -> Value {
    let retention = ServiceStats {
        name: "retention".to_owned(),
        last_run_at: Some(at(59)),
        report: Some("10 jobs and 2 idempotency keys deleted since the start".to_owned()),
    };
    value(&Stats {
        now: at(60),
        started_at: at(-3600),
        version: "0.1.0".to_owned(),
        draining: false,
        counts: COUNTS,
        oldest_ready_age_seconds: Some(Seconds::from_ms(250)),
        last_claim_age_seconds: Some(seconds(1)),
        totals: Totals { enqueues: 120, claims: 118, completions: 110, failures: 6, ..Totals::default() },
        commits: CommitStats { commits: 300, requests: 960, parked_claims: 2 },
        store: StoreStats {
            kind: "sqlite 3.54.1".to_owned(),
            schema: 1,
            size_bytes: Some(1_048_576),
            wal_bytes: Some(65_536),
            damaged_rows: 0,
        },
        services: vec![retention],
    })
}

pub(in crate::openapi) fn livez() -> Value {
    value(&Livez { status: "alive".to_owned() })
}

pub(in crate::openapi) fn readyz() -> Value {
    value(&Readyz { status: "ready".to_owned(), checks: None })
}

pub(in crate::openapi) fn not_readyz() -> Value {
    let check = ReadyzCheck {
        name: "store".to_owned(),
        ok: false,
        detail: "the disk is full; free space, no restart is needed".to_owned(),
    };
    value(&Readyz { status: "not_ready".to_owned(), checks: Some(vec![check]) })
}

pub(in crate::openapi) fn audit_page() -> Value {
    let entry = AuditEntry {
        n: 17,
        at: at(3600),
        who: "alice".to_owned(),
        action: "job.retry".to_owned(),
        target: ID.to_string(),
        note: Some("address corrected".to_owned()),
    };
    value(&AuditPage { entries: vec![entry], next: None })
}
