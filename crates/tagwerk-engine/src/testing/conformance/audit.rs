//! The audit log.

use super::Bench;
use super::steps::{at, read, undo, write};
use crate::row::{AuditQuery, AuditRow};

fn entry(ms: i64, action: &str, note: Option<&str>) -> AuditRow {
    AuditRow {
        n: 0,
        at: at(ms),
        who: format!("who 😀 {ms}"),
        action: action.to_owned(),
        target: "App\\Jobs\\Send".to_owned(),
        note: note.map(str::to_owned),
    }
}

const ALL: AuditQuery = AuditQuery { after: 0, since: None, until: None, limit: 100 };

fn audit(bench: &mut dyn Bench, query: AuditQuery) -> Vec<AuditRow> {
    read(bench, |view| view.audit(&query).expect("the audit log is read"))
}

/// Entries of the audit log come back as they were written, in the order in which they were written, page by page; what was
/// not committed leaves none.
pub fn entries_of_the_audit_log_come_back_in_order(bench: &mut dyn Bench) {
    assert_eq!(audit(bench, ALL), []);
    let first = [entry(7, "queue.pause", Some("why\nso")), entry(5, "type.put", None)];
    write(bench, |tx| tx.append_audit(&first).expect("entries are written"));
    undo(bench, |tx| tx.append_audit(&[entry(6, "lost", None)]).expect("an entry is written"));
    write(bench, |tx| tx.append_audit(&[entry(9, "job.cancel", Some(""))]).expect("an entry is written"));
    let found = audit(bench, ALL);
    let without_numbers: Vec<AuditRow> = found.iter().map(|row| AuditRow { n: 0, ..row.clone() }).collect();
    assert_eq!(without_numbers, [&first[..], &[entry(9, "job.cancel", Some(""))]].concat());
    assert!(found.windows(2).all(|pair| pair[0].n < pair[1].n) && found[0].n > 0, "{found:?}");

    assert_eq!(audit(bench, AuditQuery { limit: 2, ..ALL }), found[..2]);
    assert_eq!(audit(bench, AuditQuery { after: found[0].n, ..ALL }), found[1..]);
    assert_eq!(audit(bench, AuditQuery { after: found[2].n, ..ALL }), []);
    assert_eq!(audit(bench, AuditQuery { since: Some(at(7)), ..ALL }), [found[0].clone(), found[2].clone()]);
    assert_eq!(audit(bench, AuditQuery { until: Some(at(7)), ..ALL }), [found[1].clone()]);
}
