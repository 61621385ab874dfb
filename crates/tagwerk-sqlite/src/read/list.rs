//! Lists: pages of jobs in id order by the index that fits the question best, with a bounded scan.

use std::collections::BTreeSet;

use rusqlite::{Connection, ToSql};
use tagwerk_core::{JobId, Status, Timestamp};
use tagwerk_engine::row::LaneId;
use tagwerk_engine::store::{ListQuery, Listed, Listing};

use crate::cells::Cells;
use crate::codec::job::Depth;
use crate::error::{Fail, Res};
use crate::read::snapshot::View;

/// Rows that a page may look at, so that a rare wish cannot hold a snapshot for long.
const SCAN: usize = 50_000;

/// Which rows come into question, in id order; each with what is needed to say no early.
macro_rules! hot {
    ($from:literal) => {
        concat!("SELECT job.id, job.state, job.lane, job.created FROM ", $from, " LIMIT ?2")
    };
}
pub(crate) const ALL: &str = hot!("job WHERE job.id > ?1 ORDER BY job.id");
pub(crate) const FAILED: &str =
    hot!("job INDEXED BY job_review WHERE job.state = 3 AND job.id > ?1 ORDER BY job.id");
/// The job that holds the key, and those that once did. Two ordered reads are merged; the order of the join is theirs.
pub(crate) const BY_KEY: &str = hot!(
    "(SELECT owner AS id FROM idem_key WHERE key = ?3 AND owner > ?1 \
      UNION SELECT job FROM key_past WHERE key = ?3 AND job > ?1 ORDER BY 1 LIMIT ?2) AS named \
     CROSS JOIN job ON job.id = named.id"
);
pub(crate) const BY_CORRELATION: &str = hot!(
    "detail INDEXED BY detail_correlation CROSS JOIN job ON job.id = detail.job \
     WHERE detail.correlation_id = ?3 AND detail.correlation_id IS NOT NULL AND detail.job > ?1 ORDER BY detail.job"
);
pub(crate) const BY_SUBJECT: &str = hot!(
    "detail INDEXED BY detail_subject CROSS JOIN job ON job.id = detail.job \
     WHERE detail.subject_id = ?3 AND detail.subject_id IS NOT NULL AND detail.subject_kind = ?4 AND detail.job > ?1 ORDER BY detail.job"
);
pub(crate) const BY_SUBJECT_ID: &str = hot!(
    "detail INDEXED BY detail_subject CROSS JOIN job ON job.id = detail.job \
     WHERE detail.subject_id = ?3 AND detail.subject_id IS NOT NULL AND detail.job > ?1 ORDER BY detail.job"
);
/// Running jobs are few (they are leases); their index is by lease end, so they are sorted.
pub(crate) const RUNNING: &str = "SELECT id FROM job INDEXED BY job_lease WHERE state = 1 AND id > ?1";
const HOT: &str = "SELECT id, state, lane, created FROM job WHERE id = ?1";

/// A row that comes into question.
struct Hot {
    id: JobId,
    state: Result<Status, String>,
    lane: i64,
    created: Timestamp,
}

impl Hot {
    fn decode(row: &rusqlite::Row<'_>) -> Res<Self> {
        let cells = Cells(row);
        let state = match cells.code::<Status>(1) {
            Ok(status) => Ok(status),
            Err(Fail::Row(why)) => Err(why),
            Err(fail) => return Err(fail),
        };
        Ok(Self { id: JobId(cells.int(0)?), state, lane: cells.int(2)?, created: cells.time(3)? })
    }
}

/// A page.
pub(super) fn list(view: View<'_>, query: &ListQuery) -> Res<Listing> {
    let after = query.after.unwrap_or(JobId(0));
    let mut page = Page { view, query, rows: Vec::new(), last: after, is_full: false };
    if query.statuses == [Status::Running] && is_plain(query) {
        for id in running_ids(view.conn, after)? {
            let mut select = view.conn.prepare_cached(HOT)?;
            let mut rows = select.query([id.0])?;
            if let Some(row) = rows.next()?
                && !page.look(&Hot::decode(row)?)?
            {
                break;
            }
        }
        return Ok(page.finish());
    }
    let (sql, values) = source(query);
    let mut select = view.conn.prepare_cached(sql)?;
    let limit = i64::try_from(SCAN + 1).unwrap_or(i64::MAX);
    let mut parameters: Vec<&dyn ToSql> = vec![&after.0, &limit];
    parameters.extend(values.iter().map(|value| value as &dyn ToSql));
    let mut rows = select.query(&parameters[..])?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        if seen == SCAN {
            page.is_full = true;
            break;
        }
        seen += 1;
        if !page.look(&Hot::decode(row)?)? {
            break;
        }
    }
    Ok(page.finish())
}

/// The index that leaves the fewest rows to look at.
fn source(query: &ListQuery) -> (&'static str, Vec<&str>) {
    let ListQuery { key, correlation_id, subject_id, subject_kind, statuses, .. } = query;
    match (key, correlation_id, subject_id, subject_kind) {
        (Some(key), ..) => (BY_KEY, vec![key]),
        (_, Some(correlation_id), ..) => (BY_CORRELATION, vec![correlation_id]),
        (_, _, Some(id), Some(kind)) => (BY_SUBJECT, vec![id, kind]),
        (_, _, Some(id), None) => (BY_SUBJECT_ID, vec![id]),
        _ if *statuses == [Status::Failed] => (FAILED, Vec::new()),
        _ => (ALL, Vec::new()),
    }
}

/// Whether no index over details fits the question.
fn is_plain(query: &ListQuery) -> bool {
    query.key.is_none() && query.correlation_id.is_none() && query.subject_id.is_none()
}

/// Ids of running jobs behind `after`, in order.
pub(super) fn running_ids(conn: &Connection, after: JobId) -> Res<BTreeSet<JobId>> {
    let mut select = conn.prepare_cached(RUNNING)?;
    let ids = select.query_map([after.0], |row| row.get(0).map(JobId))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// A page while it is filled.
struct Page<'a> {
    view: View<'a>,
    query: &'a ListQuery,
    rows: Vec<Listed>,
    /// Last id that was looked at.
    last: JobId,
    /// There is something behind `last`.
    is_full: bool,
}

impl Page<'_> {
    /// Looks at the next row. Says no when the page is full.
    fn look(&mut self, hot: &Hot) -> Res<bool> {
        if !self.may_pass(hot) {
            if self.rows.len() < self.query.limit {
                self.last = hot.id;
            }
            return Ok(true);
        }
        let listed = self.view.listed(hot.id, Depth::List)?;
        let passing = listed.filter(|listed| passes(listed, self.query));
        if self.rows.len() >= self.query.limit {
            self.is_full |= passing.is_some();
            return Ok(!self.is_full);
        }
        self.last = hot.id;
        self.rows.extend(passing);
        Ok(true)
    }

    /// What the hot row alone can say no to. A row whose state cannot be read is shown unless a status is asked for.
    fn may_pass(&self, hot: &Hot) -> bool {
        let ListQuery { statuses, kind, queue, since, until, .. } = self.query;
        let lane = self.view.lanes.get(LaneId(hot.lane));
        let is = |wish: &Option<String>, name: Option<&str>| wish.is_none() || wish.as_deref() == name;
        (statuses.is_empty() || hot.state.as_ref().is_ok_and(|status| statuses.contains(status)))
            && is(kind, lane.map(|lane| &*lane.kind))
            && is(queue, lane.map(|lane| &*lane.queue))
            && since.is_none_or(|since| hot.created >= since)
            && until.is_none_or(|until| hot.created < until)
    }

    fn finish(self) -> Listing {
        Listing { next: self.is_full.then_some(self.last), rows: self.rows }
    }
}

/// What only the cold row can say. A damaged row passes: what cannot be read cannot be left out.
fn passes(listed: &Listed, query: &ListQuery) -> bool {
    let Listed::Job(job) = listed else { return true };
    let is = |wish: &Option<String>, value: Option<&str>| wish.is_none() || wish.as_deref() == value;
    let subject = job.detail.subject.as_ref();
    is(&query.subject_kind, subject.map(|subject| subject.kind.as_str()))
        && is(&query.subject_id, subject.map(|subject| subject.id.as_str()))
        && is(&query.correlation_id, job.detail.correlation_id.as_deref())
        && is(&query.key, job.detail.key.as_deref())
}
