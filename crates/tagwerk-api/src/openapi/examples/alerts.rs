//! Examples of alerts.

use serde_json::Value;

use super::{at, value};
use crate::answer::{AlertInfo, AlertsPage};
use crate::request::AckRequest;
use crate::{AlertKind, AlertScope, AlertStatus, AlertUnit};

fn alert() -> AlertInfo {
    AlertInfo {
        id: 3,
        kind: AlertKind::NoWorker,
        scope: AlertScope::Queue,
        name: Some("mail".to_owned()),
        status: AlertStatus::Open,
        opened_at: at(3600),
        last_seen_at: at(3660),
        closed_at: None,
        acknowledged_at: None,
        acknowledged_by: None,
        note: None,
        owner: Some("mail team".to_owned()),
        detail: "jobs of type send-invoice wait in queue mail, and no worker has ever asked for them (5 min)"
            .to_owned(),
        value: 300.0,
        threshold: 300.0,
        unit: AlertUnit::Seconds,
    }
}

pub(in crate::openapi) fn alerts_page() -> Value {
    value(&AlertsPage { alerts: vec![alert()], next: None })
}

pub(in crate::openapi) fn alert_acknowledged() -> Value {
    value(&AlertInfo {
        acknowledged_at: Some(at(3700)),
        acknowledged_by: Some("alice".to_owned()),
        note: Some("the worker is being started".to_owned()),
        ..alert()
    })
}

pub(in crate::openapi) fn ack() -> Value {
    value(&AckRequest { note: Some("the worker is being started".to_owned()) })
}
