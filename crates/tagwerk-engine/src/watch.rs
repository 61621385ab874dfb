//! What alerts are judged by: figures of a snapshot, of what this node has seen, and of the looks before.
//!
//! A [`Watch`] belongs to one server process and is looked through every few seconds. Guarantees: entries into review are
//! counted from the mark in the store, so that what came there while nobody looked is seen at the first look; everything else
//! that needs a past (rates, run times, who has asked) begins with the process and is told as unknown until there is one.
//!
//! Deliberately absent: thresholds (in `tagwerk_core::alert`), clocks, threads.

mod runs;
mod samples;
mod unserved;

use std::collections::{BTreeMap, HashMap};

use tagwerk_core::alert::{Figures, QueueFigures, Rules, StoreFigures, TypeFigures};
use tagwerk_core::{Status, Timestamp, limits};

use crate::engine::Vitals;
use crate::row::{AlertQuery, AlertRow, Counter, Tally, Which};
use crate::store::{ListQuery, Listed, Read, StoreResult};

pub use runs::RunTimes;
use samples::Samples;
use unserved::Unserveds;

/// How long the scan of the jobs in review is good for.
const REVIEW_SCAN_EVERY_MS: i64 = 30 * limits::SECOND_MS;

/// What is kept from look to look.
#[derive(Default)]
pub struct Watch {
    /// The first look.
    since: Option<Timestamp>,
    samples: Samples,
    unserved: Unserveds,
    /// Since when attempts of a type have been ending without one that was completed.
    unsuccessful: HashMap<String, Unsuccessful>,
    /// When each type's oldest job in review came there, and when that was looked up.
    in_review: (Option<Timestamp>, BTreeMap<String, Timestamp>),
}

#[derive(Default)]
struct Unsuccessful {
    completions: i64,
    failed: i64,
    since: Option<Timestamp>,
}

/// What a look has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// When.
    pub at: Timestamp,
    /// Since when somebody has been looking.
    pub since: Timestamp,
    /// The figures.
    pub figures: Figures,
    /// Alerts that are open.
    pub open: Vec<AlertRow>,
    /// Entries into review by type that are not marked as judged yet.
    pub marks: Vec<(String, i64)>,
}

impl Watch {
    /// Looks.
    pub fn look(
        &mut self,
        read: &mut dyn Read,
        (vitals, runs): (&Vitals, &RunTimes),
        (rules, now): (&Rules, Timestamp),
    ) -> StoreResult<Look> {
        let is_first = self.since.is_none();
        let since = *self.since.get_or_insert(now);
        let types = by_type(read)?;
        let marks: HashMap<String, i64> = read.alert_marks()?.into_iter().collect();
        if is_first {
            self.samples.begin(now, &types, &marks);
            for (kind, tally) in &types {
                self.unsuccessful.insert(kind.clone(), Unsuccessful::at(tally));
            }
        }
        self.samples.add((now, rules.window_ms), &types, runs.read());
        let queues = self.queues(read, vitals, (rules, now))?;
        self.scan_review(read, &types, now)?;
        let figures = Figures {
            queues,
            types: types.iter().map(|(kind, tally)| self.of_type((kind, tally), (rules, now))).collect(),
            store: StoreFigures {
                failing: vitals.failing.as_ref().map(|(why, ..)| why.clone()),
                wal_bytes: i64::try_from(read.facts()?.wal_bytes).unwrap_or(i64::MAX),
            },
        };
        let reviews = |tally: &Tally| tally.get(Counter::Reviews);
        let unmarked = types
            .iter()
            .filter(|(kind, tally)| marks.get(*kind).copied().unwrap_or_default() != reviews(tally));
        let marks = unmarked.map(|(kind, tally)| (kind.clone(), reviews(tally))).collect();
        let query = AlertQuery { after: 0, which: Which::Open, limit: limits::ALERTS_OPEN_MAX };
        Ok(Look { at: now, since, figures, open: read.alerts(&query)?, marks })
    }

    /// Queues that are not paused: whoever paused one knows that its jobs wait.
    fn queues(
        &mut self,
        read: &mut dyn Read,
        vitals: &Vitals,
        (rules, now): (&Rules, Timestamp),
    ) -> StoreResult<Vec<QueueFigures>> {
        let paused: Vec<String> =
            read.queue_rows()?.into_iter().filter(|row| !row.paused.is_empty()).map(|row| row.name).collect();
        let is_open = |name: &str| !paused.iter().any(|paused| paused == name);
        let mut queues: BTreeMap<String, QueueFigures> = BTreeMap::new();
        for (name, _) in read.queues()? {
            if name != crate::registry::ALL_QUEUES && is_open(&name) {
                queues.insert(name.clone(), QueueFigures { name, ..QueueFigures::default() });
            }
        }
        for lane in read.ready(now)? {
            if let Some(queue) = queues.get_mut(&*lane.lane.queue) {
                let age = now.since_ms(lane.oldest_due).max(0);
                queue.oldest_ready_ms = queue.oldest_ready_ms.max(Some(age));
            }
        }
        let found = self.unserved.look(read, vitals, (rules, now, self.since.unwrap_or(now)))?;
        for (queue, unserved) in found {
            if let Some(queue) = queues.get_mut(&queue) {
                queue.unserved.push(unserved);
            }
        }
        Ok(queues.into_values().collect())
    }

    fn of_type(
        &mut self,
        (kind, tally): (&String, &Tally),
        (rules, now): (&Rules, Timestamp),
    ) -> TypeFigures {
        let unsuccessful = self.unsuccessful.entry(kind.clone()).or_default();
        let is_more = tally.get(Counter::Pending) + tally.get(Counter::Running) > 0;
        let (ended, reviews, p95) = self.samples.within(kind, (rules.window_ms, now));
        TypeFigures {
            name: kind.clone(),
            unsuccessful_ms: unsuccessful.look(tally, now).filter(|_| is_more),
            ended,
            reviews,
            review_age_ms: self.in_review.1.get(kind).map(|since| now.since_ms(*since)),
            p95,
        }
    }

    /// Looks up how long the jobs in review have been there. A bounded number of them, lowest ids first.
    fn scan_review(
        &mut self,
        read: &mut dyn Read,
        types: &BTreeMap<String, Tally>,
        now: Timestamp,
    ) -> StoreResult<()> {
        let is_fresh = self.in_review.0.is_some_and(|at| now.since_ms(at) < REVIEW_SCAN_EVERY_MS);
        let has_failed = |kind: &String| types.get(kind).is_some_and(|tally| tally.get(Counter::Failed) > 0);
        // What has been settled since then is none any more.
        self.in_review.1.retain(|kind, _| has_failed(kind));
        if is_fresh || !types.keys().any(has_failed) {
            return Ok(());
        }
        let query = ListQuery {
            statuses: vec![Status::Failed],
            limit: limits::ALERT_REVIEW_SCAN,
            ..ListQuery::default()
        };
        let mut oldest: BTreeMap<String, Timestamp> = BTreeMap::new();
        for row in read.list(&query)?.rows {
            let Listed::Job(job) = row else { continue };
            let at = job.row.job.finished_at.unwrap_or(job.row.job.updated_at);
            let known = oldest.entry(job.row.lane.kind.to_string()).or_insert(at);
            *known = at.min(*known);
        }
        self.in_review = (Some(now), oldest);
        Ok(())
    }
}

/// Attempts that ended otherwise than completed or given back.
fn failed(tally: &Tally) -> i64 {
    tally.get(Counter::Failures) + tally.get(Counter::LeaseLosses) + tally.get(Counter::TimeOuts)
}

impl Unsuccessful {
    fn at(tally: &Tally) -> Self {
        Self { completions: tally.get(Counter::Completions), failed: failed(tally), since: None }
    }

    /// How long.
    fn look(&mut self, tally: &Tally, now: Timestamp) -> Option<i64> {
        let fresh = Self::at(tally);
        let since = if fresh.completions > self.completions {
            None
        } else if fresh.failed > self.failed {
            Some(self.since.unwrap_or(now))
        } else {
            self.since
        };
        *self = Self { since, ..fresh };
        since.map(|since| now.since_ms(since))
    }
}

/// The ledger by type.
fn by_type(read: &mut dyn Read) -> StoreResult<BTreeMap<String, Tally>> {
    let mut types: BTreeMap<String, Tally> = BTreeMap::new();
    for (lane, tally) in read.ledger()? {
        if let Some(known) = types.get_mut(&*lane.kind) {
            known.merge(&tally);
        } else {
            types.insert(lane.kind.to_string(), tally);
        }
    }
    Ok(types)
}
