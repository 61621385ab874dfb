//! What is told: the same JSON on every way.

use serde::Serialize;
use tagwerk_api::{AlertUnit, Time, format_rfc3339};
use tagwerk_core::Timestamp;
use tagwerk_engine::command::Turn;
use tagwerk_engine::row::AlertRow;

use super::figures::{amount, unit};

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The same whenever it is told again.
    pub(super) id: String,
    /// JSON.
    pub(super) body: String,
}

#[derive(Serialize)]
struct Envelope<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    id: Option<i64>,
    kind: &'static str,
    scope: &'static str,
    name: Option<&'a str>,
    status: &'static str,
    owner: Option<&'a str>,
    detail: &'a str,
    value: f64,
    threshold: f64,
    unit: AlertUnit,
    opened_at: String,
    closed_at: Option<String>,
}

impl Message {
    /// That an alert has opened, or closed.
    pub(super) fn new(row: &AlertRow, turn: Turn) -> Result<Self, serde_json::Error> {
        let at = match turn {
            Turn::Opened => row.opened_at,
            Turn::Closed => row.closed_at.unwrap_or(row.seen_at),
        };
        // Another store may give the same numbers again, hardly at the same millisecond.
        let id = format!("alert_{}_{}_{}", row.id, row.opened_at.as_millis(), turn.name());
        let envelope = Envelope {
            id: &id,
            kind: match turn {
                Turn::Opened => "alert.opened",
                Turn::Closed => "alert.closed",
            },
            timestamp: time(at),
            data: Data {
                // One that is not in the store has no number.
                id: (row.id > 0).then_some(row.id),
                kind: row.kind.name(),
                scope: row.scope.word(),
                name: Some(row.scope.name()).filter(|name| !name.is_empty()),
                status: match turn {
                    Turn::Opened => "open",
                    Turn::Closed => "closed",
                },
                owner: row.owner.as_deref(),
                detail: &row.detail,
                value: amount(row.kind, row.value),
                threshold: amount(row.kind, row.threshold),
                unit: unit(row.kind),
                opened_at: time(row.opened_at),
                closed_at: (turn == Turn::Closed).then(|| time(at)),
            },
        };
        let body = serde_json::to_string(&envelope)?;
        Ok(Self { id, body })
    }
}

fn time(at: Timestamp) -> String {
    format_rfc3339(Time::from_ms(at.as_millis()).ms())
}
