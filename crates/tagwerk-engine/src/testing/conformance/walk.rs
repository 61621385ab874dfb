//! A random walk: thousands of operations, committed and rolled back, against a brute force over all rows.

use std::collections::BTreeMap;

use tagwerk_core::{JobId, Status, Timestamp};

use super::Bench;
use super::steps::{add, at, ids, job, look, owned, peek, priority, put_all, requeued, settled, started};
use crate::row::JobRow;
use crate::store::{ClaimQuery, Filter, Tx};
use crate::testing::entropy::Seeded;

const KINDS: [&str; 4] = ["a", "b", "c", "d"];
const QUEUES: [&str; 3] = ["x", "y", "z"];
const PRIORITIES: [u8; 5] = [0, 10, 11, 20, 100];

/// Rows as they should be.
type Model = BTreeMap<JobId, JobRow>;

/// A walk with few rows, so that levels are often empty.
pub fn a_random_walk_over_few_rows_equals_a_brute_force(bench: &mut dyn Bench) {
    Walk::new(1, 40).go(bench, 250);
}

/// Another one.
pub fn a_random_walk_with_a_second_seed_equals_a_brute_force(bench: &mut dyn Bench) {
    Walk::new(2, 100).go(bench, 250);
}

/// A walk with more rows, so that claims never take all.
pub fn a_random_walk_over_many_rows_equals_a_brute_force(bench: &mut dyn Bench) {
    Walk::new(3, 700).go(bench, 250);
}

/// A walk in which most transactions roll back.
pub fn a_random_walk_with_many_rollbacks_equals_a_brute_force(bench: &mut dyn Bench) {
    Walk { rollbacks: 90, ..Walk::new(4, 150) }.go(bench, 350);
}

struct Walk {
    chance: Seeded,
    rows: Model,
    now: i64,
    /// Jobs are added while fewer than this are unfinished.
    size: usize,
    /// How many transactions of a hundred roll back.
    rollbacks: usize,
}

impl Walk {
    const fn new(seed: u64, size: usize) -> Self {
        Self { chance: Seeded::new(seed), rows: Model::new(), now: 0, size, rollbacks: 25 }
    }

    /// Each transaction does several things; then everything is compared.
    fn go(mut self, bench: &mut dyn Bench, transactions: usize) {
        for round in 0..transactions {
            let before = self.rows.clone();
            let mut tx = bench.store().begin().expect("a transaction begins");
            for _ in 0..=self.chance.below(12) {
                self.step(&mut *tx);
            }
            if self.chance.below(100) < self.rollbacks {
                drop(tx);
                self.rows = before;
            } else {
                tx.commit().expect("the transaction is committed");
            }
            if self.chance.one_in(25) {
                bench.reopen();
            }
            self.compare(bench, round);
        }
    }

    fn step(&mut self, tx: &mut dyn Tx) {
        self.now += i64::try_from(self.chance.below(4)).expect("small");
        match self.chance.below(10) {
            0..=2 => self.insert(tx),
            3..=5 => self.claim(tx),
            6 => self.bring_back(tx),
            7 => self.shuffle(tx),
            8 => self.finish(tx),
            _ => self.look_at_time(tx),
        }
    }

    fn insert(&mut self, tx: &mut dyn Tx) {
        let unfinished = self.rows.values().filter(|row| !row.job.status.is_settled()).count();
        if unfinished >= self.size {
            return;
        }
        let count = 1 + self.chance.below(1 + self.size / 10);
        let drafts: Vec<_> = (0..count)
            .map(|_| {
                let draft = job().kind(KINDS[self.chance.below(4)]).queue(QUEUES[self.chance.below(3)]);
                let draft = if self.chance.one_in(4) { draft.expires(self.near()) } else { draft };
                let size = 2 + self.chance.below(20);
                draft.priority(PRIORITIES[self.chance.below(5)]).due(self.near()).payload_of(size)
            })
            .collect();
        self.keep(add(tx, &drafts));
    }

    /// A moment around the present.
    fn near(&mut self) -> Timestamp {
        let around = i64::try_from(self.chance.below(30)).expect("small");
        at(self.now + around - 20)
    }

    fn claim(&mut self, tx: &mut dyn Tx) {
        let filters: Vec<Filter> = (0..=self.chance.below(3)).map(|_| self.filter()).collect();
        let skip: Vec<JobId> = self.rows.keys().copied().filter(|_| self.chance.one_in(9)).collect();
        let wishes: Vec<ClaimQuery<'_>> = filters
            .iter()
            .map(|filter| ClaimQuery {
                filter,
                wanted: self.chance.below(12),
                max_bytes: if self.chance.one_in(3) { 60 } else { u64::MAX },
                skip: if self.chance.one_in(2) { &skip } else { &[] },
            })
            .collect();
        let given = look(tx, at(self.now), &wishes);
        assert_eq!(given, self.brute_force(&wishes), "claims at {}", self.now);
        let changes: Vec<(JobRow, JobRow)> =
            given.concat().into_iter().map(|row| (row.clone(), self.hand_out(&row))).collect();
        self.change(tx, &changes);
    }

    /// Mostly running; sometimes what else a claim may find for a row: expired, or put off.
    fn hand_out(&mut self, row: &JobRow) -> JobRow {
        match self.chance.below(12) {
            0 => settled(row, Status::Failed, at(self.now)),
            1 => requeued(row, at(self.now + 1)),
            _ => started(row, self.near().plus_ms(10)),
        }
    }

    fn filter(&mut self) -> Filter {
        let mut some = |names: &[&str]| {
            self.chance.one_in(2).then(|| {
                let first = self.chance.below(names.len());
                let last = first + self.chance.below(names.len() - first);
                owned(&names[first..=last])
            })
        };
        Filter { queues: some(&QUEUES), types: some(&KINDS), space: None }
    }

    fn brute_force(&self, wishes: &[ClaimQuery<'_>]) -> Vec<Vec<JobRow>> {
        let mut left = self.in_claim_order();
        left.retain(|row| row.job.available_at <= at(self.now));
        wishes
            .iter()
            .map(|wish| {
                let mut rows: Vec<JobRow> = Vec::new();
                let mut bytes = 0;
                for row in &left {
                    if !wish.filter.matches(&row.lane) || wish.skip.contains(&row.job.id) {
                        continue;
                    }
                    bytes += row.answer_bytes();
                    if rows.len() == wish.wanted || (bytes > wish.max_bytes && !rows.is_empty()) {
                        break;
                    }
                    rows.push(row.clone());
                }
                left.retain(|row| !rows.contains(row));
                rows
            })
            .collect()
    }

    fn in_claim_order(&self) -> Vec<JobRow> {
        let mut rows: Vec<JobRow> = self.with_status(Status::Pending);
        rows.sort_by_key(|row| (std::cmp::Reverse(row.priority), row.job.available_at, row.job.id));
        rows
    }

    fn with_status(&self, status: Status) -> Vec<JobRow> {
        self.rows.values().filter(|row| row.job.status == status).cloned().collect()
    }

    /// Some of the running and failed rows go back among the pending.
    fn bring_back(&mut self, tx: &mut dyn Tx) {
        let rows = [self.with_status(Status::Running), self.with_status(Status::Failed)].concat();
        let changes: Vec<_> = self.some_of(rows, 6);
        let changes: Vec<_> =
            changes.into_iter().map(|row| (row.clone(), requeued(&row, self.near()))).collect();
        self.change(tx, &changes);
    }

    /// Some of the pending rows get another priority or due time.
    fn shuffle(&mut self, tx: &mut dyn Tx) {
        let rows = self.some_of(self.with_status(Status::Pending), 4);
        let changes: Vec<_> = rows
            .into_iter()
            .map(|row| {
                let mut after = requeued(&row, self.near());
                after.priority = priority(PRIORITIES[self.chance.below(5)]);
                (row, after)
            })
            .collect();
        self.change(tx, &changes);
    }

    /// Some rows come to rest, some are erased.
    fn finish(&mut self, tx: &mut dyn Tx) {
        let rows = self.some_of(self.rows.values().cloned().collect(), 6);
        let rest = [Status::Completed, Status::Failed, Status::Cancelled][self.chance.below(3)];
        let changes: Vec<_> =
            rows.into_iter().map(|row| (row.clone(), settled(&row, rest, at(self.now)))).collect();
        self.change(tx, &changes);
        let gone = ids(&self.some_of(self.rows.values().cloned().collect(), 2));
        tx.erase(&gone).expect("jobs are erased");
        self.rows.retain(|id, _| !gone.contains(id));
    }

    fn some_of(&mut self, mut rows: Vec<JobRow>, most: usize) -> Vec<JobRow> {
        let wanted = self.chance.below(most + 1).min(rows.len());
        (0..wanted).map(|_| rows.swap_remove(self.chance.below(rows.len()))).collect()
    }

    fn change(&mut self, tx: &mut dyn Tx, changes: &[(JobRow, JobRow)]) {
        put_all(tx, changes);
        self.keep(changes.iter().map(|(_, after)| after.clone()).collect());
    }

    fn keep(&mut self, rows: Vec<JobRow>) {
        self.rows.extend(rows.into_iter().map(|row| (row.job.id, row)));
    }

    /// What time has made due, against the rows.
    fn look_at_time(&mut self, tx: &mut dyn Tx) {
        let now = at(self.now);
        let filter = self.filter();
        let pending = self.with_status(Status::Pending);
        let passing = pending.iter().filter(|row| filter.matches(&row.lane));
        let next = passing.map(|row| row.job.available_at).filter(|due| *due > now).min();
        assert_eq!(tx.next_due(now, &filter).expect("a time is read"), next);
        let mut expired = pending;
        expired.retain(|row| row.job.expires_at.is_some_and(|at| at <= now));
        expired.sort_by_key(|row| (row.job.expires_at, row.job.id));
        assert_eq!(tx.expired(now, 1_000).expect("rows are read"), expired);
        let mut overdue = self.with_status(Status::Running);
        let end = |row: &JobRow| row.job.lease.as_ref().map(tagwerk_core::Lease::ends_at);
        overdue.retain(|row| end(row).is_some_and(|end| end <= now));
        overdue.sort_by_key(|row| (end(row), row.job.id));
        assert_eq!(tx.overdue(now, 1_000).expect("rows are read"), overdue);
    }

    /// Everything that is committed, against the rows.
    fn compare(&mut self, bench: &mut dyn Bench, round: usize) {
        let due: Vec<JobId> = self
            .in_claim_order()
            .iter()
            .filter(|row| row.job.available_at <= at(self.now))
            .map(|row| row.job.id)
            .collect();
        assert_eq!(peek(bench, at(self.now), &Filter::default()), due, "claimable in round {round}");
        if round.is_multiple_of(10) {
            let asked: Vec<JobId> = self.rows.keys().copied().collect();
            let found = super::steps::undo(bench, |tx| tx.load(&asked).expect("rows are read"));
            assert!(found.iter().flatten().flatten().eq(self.rows.values()), "rows in round {round}");
        }
    }
}
