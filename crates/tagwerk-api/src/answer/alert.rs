//! Alerts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{AlertKind, AlertScope, AlertStatus, AlertUnit, Time};

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AlertInfo {
    /// Its number, rising.
    pub id: i64,
    /// What is wrong.
    pub kind: AlertKind,
    /// Where.
    pub scope: AlertScope,
    /// The name of the queue or type; `null` for the server.
    pub name: Option<String>,
    /// Whether it is still so.
    pub status: AlertStatus,
    /// When it opened.
    pub opened_at: Time,
    /// When it was last so, to half a minute.
    pub last_seen_at: Time,
    /// When it closed.
    pub closed_at: Option<Time>,
    /// When somebody said that they look after it.
    pub acknowledged_at: Option<Time>,
    /// Who: the name of an API token, or `local` for a caller without one.
    pub acknowledged_by: Option<String>,
    /// What they said.
    pub note: Option<String>,
    /// Who is responsible, as the type or the settings say.
    pub owner: Option<String>,
    /// In words, as it was last seen.
    pub detail: String,
    /// The figure, as it was last seen.
    pub value: f64,
    /// From where on it counts.
    pub threshold: f64,
    /// What both count.
    pub unit: AlertUnit,
}

/// `GET /alerts`, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AlertsPage {
    /// The alerts of this page.
    pub alerts: Vec<AlertInfo>,
    /// What to give as `after` for the next page; `null` at the end.
    pub next: Option<String>,
}
