//! The review list: failed jobs, filtered by why they failed.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use tagwerk_api::answer::{DamagedJob, ReviewPage};
use tagwerk_api::query::ReviewQuery;
use tagwerk_core::{JobId, Status, limits};
use tagwerk_engine::row::FullJob;
use tagwerk_engine::store::{ListQuery, Listed, Listing, Read, StoreResult};

use super::access::Rights;
use super::jobs::{page_size, with_places};
use super::reply::{self, Answer};
use super::sent::Query;
use super::{App, decode, view};

/// `GET /review`
pub(super) async fn list(State(app): State<Arc<App>>, rights: Rights, Query(query): Query) -> Answer {
    let query = app.door.review_query(&query)?;
    let (rows, places, next) = app
        .read(move |read| {
            let page = scan(read, &query)?;
            with_places(read, page)
        })
        .await?;
    reply::large_json(StatusCode::OK, move || {
        let mut page =
            ReviewPage { jobs: Vec::new(), damaged: Vec::new(), next: next.map(|id| id.to_string()) };
        for (row, place) in rows.into_iter().zip(places) {
            match row {
                Listed::Job(job) if !rights.see(&job.row.lane) => {}
                Listed::Job(job) => {
                    let mut summary = view::summary(&job, (app.owners.of(&job.row.lane.kind), &rights));
                    view::put_place(&mut summary, place);
                    page.jobs.push(summary);
                }
                Listed::Damaged { .. } if !rights.reach_everything() => {}
                Listed::Damaged { id, why } => page.damaged.push(DamagedJob { id: id.0, detail: why }),
            }
        }
        page
    })
    .await
}

/// Looks through a bounded number of failed jobs for those that fit. The page may be short and still have a `next`.
fn scan(read: &mut dyn Read, query: &ReviewQuery) -> StoreResult<Listing> {
    let wanted = page_size(query.limit);
    let mut after = query.after.map(JobId);
    let mut found = Vec::new();
    for _ in 0..limits::REVIEW_SCAN_PAGES {
        let page = read.list(&ListQuery {
            statuses: vec![Status::Failed],
            kind: query.job_type.clone(),
            queue: query.queue.clone(),
            after,
            limit: page_size(Some(limits::LIST_PAGE.max)),
            ..ListQuery::default()
        })?;
        for row in page.rows {
            if found.len() == wanted {
                return Ok(Listing { rows: found, next: after });
            }
            after = Some(id_of(&row));
            if fits(&row, query) {
                found.push(row);
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(Listing { rows: found, next: after })
}

const fn id_of(row: &Listed) -> JobId {
    match row {
        Listed::Job(job) => job.row.job.id,
        Listed::Damaged { id, .. } => *id,
    }
}

/// A row that cannot be read is shown whatever is asked for: nobody knows that it does not fit.
fn fits(row: &Listed, query: &ReviewQuery) -> bool {
    match row {
        Listed::Damaged { .. } => true,
        Listed::Job(job) => job_fits(job, query),
    }
}

fn job_fits(full: &FullJob, query: &ReviewQuery) -> bool {
    let job = &full.row.job;
    let failed_at = job.finished_at.unwrap_or(job.updated_at);
    job.failure.is_none_or(|failure| {
        view::class_matches(query.class, failure) && view::reason_matches(query.reason, failure)
    }) && query.since.is_none_or(|since| failed_at >= decode::time(since))
        && query.until.is_none_or(|until| failed_at < decode::time(until))
}
