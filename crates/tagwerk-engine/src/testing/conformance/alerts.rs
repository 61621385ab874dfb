//! Alerts.

use tagwerk_core::alert::{Kind, Scope};

use super::Bench;
use super::steps::{at, read, undo, write};
use crate::row::{Acknowledged, AlertQuery, AlertRow, Ways, Which};

fn alert(kind: Kind, scope: Scope) -> AlertRow {
    AlertRow {
        id: 0,
        kind,
        scope,
        opened_at: at(5),
        seen_at: at(6),
        calm_since: None,
        closed_at: None,
        acknowledged: None,
        owner: None,
        detail: "jobs wait\n😀".to_owned(),
        value: 7,
        threshold: 3,
        due_opened: Ways::COMMAND,
        due_closed: Ways::NONE,
    }
}

fn page(bench: &mut dyn Bench, query: AlertQuery) -> Vec<AlertRow> {
    read(bench, |view| view.alerts(&query).expect("alerts are read"))
}

fn all(bench: &mut dyn Bench, which: Which) -> Vec<AlertRow> {
    page(bench, AlertQuery { after: 0, which, limit: 100 })
}

/// Alerts of every kind and scope come back as they were written, also after a change, page by page; numbers rise and are not
/// used again; what was not committed leaves nothing.
pub fn alerts_come_back_as_they_were_written(bench: &mut dyn Bench) {
    assert_eq!(all(bench, Which::All), []);
    let scopes = [Scope::Server, Scope::Queue("q".to_owned()), Scope::Type("App\\Send".to_owned())];
    let mut rows: Vec<AlertRow> = Kind::ALL
        .into_iter()
        .flat_map(|kind| scopes.iter().map(move |scope| alert(kind, scope.clone())))
        .collect();
    undo(bench, |tx| {
        tx.put_alerts(&mut [alert(Kind::Store, Scope::Server)]).expect("an alert is written");
        tx.put_alert_marks(&[("lost".to_owned(), 3)]).expect("a mark is written");
    });
    write(bench, |tx| tx.put_alerts(&mut rows).expect("alerts are written"));
    assert!(rows.windows(2).all(|pair| pair[0].id < pair[1].id) && rows[0].id > 0, "{rows:?}");
    assert_eq!(all(bench, Which::All), rows);
    assert_eq!(all(bench, Which::Open), rows);
    assert_eq!(all(bench, Which::Closed), []);

    let changed = AlertRow {
        seen_at: at(60),
        calm_since: Some(at(61)),
        closed_at: Some(at(62)),
        acknowledged: Some(Acknowledged { at: at(63), by: "a".to_owned(), note: Some("b".to_owned()) }),
        owner: Some("c".to_owned()),
        detail: String::new(),
        value: -1,
        threshold: i64::MAX,
        due_opened: Ways::NONE,
        due_closed: Ways::COMMAND.with(Ways::WEBHOOK),
        ..rows[1].clone()
    };
    let told = AlertRow { due_opened: Ways::NONE, ..rows[2].clone() };
    write(bench, |tx| {
        tx.put_alerts(&mut [changed.clone(), told.clone()]).expect("alerts are written");
        let found = tx.alerts(&[changed.id, i64::MAX, told.id]).expect("alerts are read");
        assert_eq!(found, [Some(changed.clone()), None, Some(told.clone())]);
        let open = tx.open_alerts().expect("open alerts are read");
        assert_eq!(open.len(), rows.len() - 1);
        assert!(open.iter().all(|row| row.id != changed.id));
    });
    assert_eq!(all(bench, Which::Closed), std::slice::from_ref(&changed));
    let due: Vec<i64> = all(bench, Which::Due).iter().map(|row| row.id).collect();
    let expected: Vec<i64> = rows.iter().map(|row| row.id).filter(|id| *id != told.id).collect();
    assert_eq!(due, expected);
    let query = AlertQuery { after: rows[0].id, which: Which::All, limit: 2 };
    assert_eq!(page(bench, query), [changed.clone(), told]);

    // The thing has rung before, so this is another alert.
    let mut again = [AlertRow { id: 0, ..rows[1].clone() }];
    write(bench, |tx| tx.put_alerts(&mut again).expect("an alert is written"));
    assert!(again[0].id > rows[rows.len() - 1].id);
}

/// Marks of types come back as they were last written.
pub fn marks_of_types_come_back(bench: &mut dyn Bench) {
    let marks = |bench: &mut dyn Bench| read(bench, |view| view.alert_marks().expect("marks are read"));
    assert_eq!(marks(bench), []);
    let mark = |kind: &str, n: i64| (kind.to_owned(), n);
    write(bench, |tx| tx.put_alert_marks(&[mark("b", 1), mark("a", 2)]).expect("marks are written"));
    write(bench, |tx| tx.put_alert_marks(&[mark("b", 5)]).expect("marks are written"));
    assert_eq!(marks(bench), [mark("a", 2), mark("b", 5)]);
}
