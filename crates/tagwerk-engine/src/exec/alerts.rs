//! Calls about alerts. What opens and closes has been judged by `tagwerk_core::alert` from figures of a moment ago; here it is
//! held against the rows as they are, so that nothing opens twice.

use std::collections::{BTreeMap, BTreeSet};

use tagwerk_core::alert::{Change, Kind, Reading, Scope};
use tagwerk_core::limits;

use crate::command::{AlertAnswer, AlertCall, Judgement, Turn};
use crate::message::By;
use crate::row::{Acknowledged, AlertRow, Ways};
use crate::store::StoreResult;
use crate::work::Work;

/// Executes a call.
pub(crate) fn call(work: &mut Work<'_>, call: &AlertCall, by: &By) -> StoreResult<AlertAnswer> {
    match call {
        AlertCall::Judge(judgement) => judge(work, judgement),
        AlertCall::Acknowledge { id, note } => change(work, *id, |row, now| {
            let is_new = row.acknowledged.is_none();
            if is_new {
                let by = by.name().to_owned();
                row.acknowledged = Some(Acknowledged { at: now, by, note: note.clone() });
            }
            is_new
        }),
        AlertCall::Told { id, turn, way } => change(work, *id, |row, _| {
            let due = match turn {
                Turn::Opened => &mut row.due_opened,
                Turn::Closed => &mut row.due_closed,
            };
            let was_due = due.meets(*way);
            *due = due.without(*way);
            was_due
        }),
    }
}

fn change(
    work: &mut Work<'_>,
    id: i64,
    change: impl FnOnce(&mut AlertRow, tagwerk_core::Timestamp) -> bool,
) -> StoreResult<AlertAnswer> {
    let Some(mut row) = work.tx.alerts(&[id])?.pop().flatten() else { return Ok(AlertAnswer::NoSuchAlert) };
    let changed = change(&mut row, work.env.now);
    if changed {
        work.tx.put_alerts(std::slice::from_mut(&mut row))?;
    }
    Ok(AlertAnswer::Alert { alert: Box::new(row), changed })
}

fn judge(work: &mut Work<'_>, judgement: &Judgement) -> StoreResult<AlertAnswer> {
    let mut open: BTreeMap<i64, AlertRow> =
        work.tx.open_alerts()?.into_iter().map(|row| (row.id, row)).collect();
    let known: BTreeSet<(Kind, Scope)> = open.values().map(|row| (row.kind, row.scope.clone())).collect();
    let (mut opened, mut touched) = (Vec::new(), BTreeSet::new());
    for change in &judgement.changes {
        let (id, row) = match change {
            Change::Open(reading) => {
                let is_known = known.contains(&(reading.kind, reading.scope.clone()));
                if !is_known && open.len() + opened.len() < limits::ALERTS_OPEN_MAX {
                    opened.push(new(work, judgement, reading));
                }
                continue;
            }
            Change::Seen(id, _) | Change::Restless(id) | Change::Calm(id) | Change::Close(id) => {
                (*id, open.get_mut(id))
            }
        };
        // It was closed in the meantime, by nobody but an earlier judgement.
        let Some(row) = row else { continue };
        apply(row, change, (judgement.ways, work.env.now));
        touched.insert(id);
    }
    let mut rows: Vec<AlertRow> = touched.iter().filter_map(|id| open.remove(id)).collect();
    if !rows.is_empty() {
        work.tx.put_alerts(&mut rows)?;
    }
    if !opened.is_empty() {
        work.tx.put_alerts(&mut opened)?;
    }
    if !judgement.marks.is_empty() {
        work.tx.put_alert_marks(&judgement.marks)?;
    }
    rows.retain(|row| row.closed_at.is_some());
    Ok(AlertAnswer::Judged { opened, closed: rows })
}

fn new(work: &Work<'_>, judgement: &Judgement, reading: &Reading) -> AlertRow {
    let now = work.env.now;
    let of_type = match &reading.scope {
        Scope::Type(kind) => work.env.types.get(kind).and_then(|settings| settings.owner.clone()),
        Scope::Server | Scope::Queue(_) => None,
    };
    AlertRow {
        id: 0,
        kind: reading.kind,
        scope: reading.scope.clone(),
        opened_at: now,
        seen_at: now,
        calm_since: None,
        closed_at: None,
        acknowledged: None,
        owner: judgement.owners.get(&reading.scope).cloned().or(of_type),
        detail: reading.detail.clone(),
        value: reading.value,
        threshold: reading.threshold,
        due_opened: judgement.ways,
        due_closed: Ways::NONE,
    }
}

fn apply(row: &mut AlertRow, change: &Change, (ways, now): (Ways, tagwerk_core::Timestamp)) {
    match change {
        Change::Seen(_, reading) => {
            row.seen_at = now;
            row.calm_since = None;
            row.detail.clone_from(&reading.detail);
            (row.value, row.threshold) = (reading.value, reading.threshold);
        }
        Change::Restless(_) => row.calm_since = None,
        Change::Calm(_) => row.calm_since = Some(now),
        Change::Close(_) => {
            row.closed_at = Some(now);
            row.due_closed = ways;
        }
        Change::Open(_) => {}
    }
}
