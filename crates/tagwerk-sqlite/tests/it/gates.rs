//! Limits and fair keys on SQLite against the memory store, which looks at every row: the same random life on both, and the
//! same rows at every claim.

use proptest::prelude::*;
use tagwerk_core::gate::{LimitSettings, Rate};
use tagwerk_core::{JobId, Priority, QueueSettings, Reserve, Status, Timestamp};
use tagwerk_engine::row::{JobRow, LimitRef, QueueRow, Special};
use tagwerk_engine::store::{Change, Filter, Insert, SpecialName, Store, Tx};
use tagwerk_engine::testing::conformance::Bench as _;
use tagwerk_engine::testing::memory::MemoryStore;

use crate::bench::SqliteBench;
use crate::steps::{Draft, at, claimable, inserts, job, started, undo, write};

const LIMITS: [&str; 4] = ["a", "b", "b:1", "c"];
const KEYS: [&str; 3] = ["x", "y", "z"];

/// What becomes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Committed,
    RolledBack,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![4 => Just(Fate::Committed), 1 => Just(Fate::RolledBack)]
}

/// One step of a life.
#[derive(Clone, Debug)]
enum Step {
    Add { of: Shape, n: usize },
    Claim { filter: usize, wanted: usize, fate: Fate },
    End { nth: usize, requeue: Option<i64>, fate: Fate },
    Set { limit: usize, max_running: Option<u32>, rate: Option<(u32, i64, bool)> },
    Hold { limit: usize, ms: i64 },
    Bound { queue: bool, max_running: Option<u32>, reserve: Option<(u32, u8)>, fate: Fate },
    Pass { ms: i64 },
}

/// What a job is like.
#[derive(Clone, Debug)]
struct Shape {
    queue: bool,
    kind: bool,
    priority: u8,
    delay: i64,
    limits: Vec<usize>,
    key: Option<usize>,
}

fn shape() -> impl Strategy<Value = Shape> {
    let limits = prop_oneof![
        2 => Just(Vec::new()),
        3 => (0..LIMITS.len()).prop_map(|limit| vec![limit]),
        2 => proptest::sample::subsequence((0..LIMITS.len()).collect::<Vec<_>>(), 2),
    ];
    let key = proptest::option::weighted(0.4, 0..KEYS.len());
    let delay = prop_oneof![4 => Just(0_i64), 1 => 0_i64..3_000];
    (any::<bool>(), any::<bool>(), 0_u8..3, delay, limits, key).prop_map(
        |(queue, kind, level, delay, limits, key)| Shape {
            queue,
            kind,
            priority: level * 10,
            delay,
            limits,
            key,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let rate = proptest::option::weighted(0.3, (1_u32..5, 100_i64..3_000, any::<bool>()));
    prop_oneof![
        5 => (shape(), 1_usize..12).prop_map(|(of, n)| Step::Add { of, n }),
        6 => (0_usize..4, 1_usize..8, fate())
            .prop_map(|(filter, wanted, fate)| Step::Claim { filter, wanted, fate }),
        6 => (0_usize..40, proptest::option::weighted(0.3, 0_i64..2_000), fate())
            .prop_map(|(nth, requeue, fate)| Step::End { nth, requeue, fate }),
        2 => (0..LIMITS.len(), proptest::option::weighted(0.7, 0_u32..4), rate)
            .prop_map(|(limit, max_running, rate)| Step::Set { limit, max_running, rate }),
        1 => (0..LIMITS.len(), 0_i64..1_500).prop_map(|(limit, ms)| Step::Hold { limit, ms }),
        1 => (any::<bool>(), proptest::option::weighted(0.7, 1_u32..5),
              proptest::option::of((1_u32..4, 0_u8..3)), fate())
            .prop_map(|(queue, max_running, reserve, fate)| Step::Bound { queue, max_running, reserve, fate }),
        2 => (0_i64..900).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// Both stores.
struct Pair {
    memory: MemoryStore,
    place: SqliteBench,
    now: Timestamp,
}

impl Pair {
    /// Does the same on both, and commits or not. Both must answer the same.
    fn both<R: PartialEq + std::fmt::Debug>(&mut self, fate: Fate, work: impl Fn(&mut dyn Tx) -> R) -> R {
        let run = if fate == Fate::Committed { write::<R> } else { undo::<R> };
        let expected = run(&mut self.memory, &work);
        let found = run(self.place.store(), &work);
        assert_eq!(found, expected, "SQLite on the left");
        found
    }

    fn take(&mut self, step: &Step) {
        let now = self.now;
        match step {
            Step::Add { of, n } => {
                self.both(Fate::Committed, |tx| add(tx, of, (*n, now)));
            }
            Step::Claim { filter, wanted, fate } => {
                let filter = filter_of(*filter);
                let taken = self.both(*fate, |tx| claim(tx, &filter, (*wanted, now)));
                if taken.is_empty() {
                    let due = |store: &mut dyn Store| {
                        undo(store, |tx| {
                            claim(tx, &filter, (*wanted, now));
                            tx.next_due(now, &filter).expect("it is read")
                        })
                    };
                    let (exact, hint) = (due(&mut self.memory), due(self.place.store()));
                    assert!(hint.is_some() || exact.is_none(), "nobody would look again at {exact:?}");
                    assert!(
                        exact.is_none_or(|exact| hint.is_some_and(|hint| hint <= exact)),
                        "{hint:?} > {exact:?}"
                    );
                }
            }
            Step::End { nth, requeue, fate } => {
                self.both(*fate, |tx| end(tx, *nth, requeue.map(|ms| now.plus_ms(ms))));
            }
            Step::Set { limit, max_running, rate } => {
                let name = LimitRef::parse(LIMITS[*limit]).name;
                let rate = rate.map(|(count, per_ms, spread)| Rate { count, per_ms, spread });
                let settings = LimitSettings { max_running: *max_running, rate };
                self.both(Fate::Committed, |tx| tx.put_limit(&name, Some(&settings)).expect("it is written"));
            }
            Step::Hold { limit, ms } => {
                let limit = LimitRef::parse(LIMITS[*limit]);
                self.both(Fate::Committed, |tx| tx.hold_limit(&limit, now.plus_ms(*ms)).expect("it is held"));
            }
            Step::Bound { queue, max_running, reserve, fate } => {
                let reserve =
                    reserve.map(|(slots, level)| Reserve { slots, from_priority: priority(level * 10) });
                let reserve = reserve.filter(|reserve| max_running.is_some_and(|max| reserve.slots < max));
                let settings = QueueSettings { max_running: *max_running, reserve, max_depth: None };
                let row = QueueRow { settings, ..QueueRow::plain(if *queue { "q1" } else { "q2" }) };
                self.both(*fate, |tx| tx.put_queue(&row).expect("it is written"));
            }
            Step::Pass { ms } => self.now = now.plus_ms(*ms),
        }
    }
}

fn priority(value: u8) -> Priority {
    Priority::from_value(value).expect("a priority")
}

fn add(tx: &mut dyn Tx, of: &Shape, (n, now): (usize, Timestamp)) -> Vec<JobRow> {
    let draft = Draft {
        queue: if of.queue { "q1" } else { "q2" }.to_owned(),
        kind: if of.kind { "t1" } else { "t2" }.to_owned(),
        priority: of.priority,
        due: now.plus_ms(of.delay),
        ..job()
    };
    let mut jobs: Vec<Insert> = inserts(tx, &vec![draft.clone(); n]);
    let mut limits: Vec<LimitRef> = of.limits.iter().map(|limit| LimitRef::parse(LIMITS[*limit])).collect();
    limits.sort();
    let special = Special { limits, fair_key: of.key.map(|key| KEYS[key].to_owned()) };
    if special != Special::default() {
        let name = SpecialName { queue: &draft.queue, kind: &draft.kind, special: &special, space: None };
        let lane = tx.intern_special(&[name]).expect("a lane").remove(0);
        for job in &mut jobs {
            job.row.lane = lane.clone();
        }
    }
    tx.insert(&jobs).expect("jobs are inserted");
    jobs.into_iter().map(|job| job.row).collect()
}

fn filter_of(n: usize) -> Filter {
    let one = |name: &str| Some(vec![name.to_owned()]);
    match n {
        0 => Filter::default(),
        1 => Filter { queues: one("q1"), types: None, space: None },
        2 => Filter { queues: None, types: one("t2"), space: None },
        _ => Filter { queues: one("q2"), types: one("t1"), space: None },
    }
}

fn claim(tx: &mut dyn Tx, filter: &Filter, (wanted, now): (usize, Timestamp)) -> Vec<JobId> {
    let rows = claimable(tx, now, (filter, wanted));
    let changes: Vec<Change> =
        rows.into_iter().map(|before| Change { after: started(&before, now), before }).collect();
    tx.put(&changes).expect("rows are changed");
    changes.into_iter().map(|change| change.after.job.id).collect()
}

/// Ends the n-th running job, if there are as many.
fn end(tx: &mut dyn Tx, nth: usize, requeue: Option<Timestamp>) -> Option<JobId> {
    let far = at(i64::from(u32::MAX) * 1_000);
    let mut running = tx.overdue(far, usize::MAX).expect("running rows are read");
    running.sort_by_key(|row| row.job.id);
    let before = running.into_iter().nth(nth)?;
    let mut after = before.clone();
    after.job.version += 1;
    after.job.lease = None;
    if let Some(due) = requeue {
        after.job.status = Status::Pending;
        after.job.available_at = due;
    } else {
        after.job.status = Status::Completed;
        after.job.finished_at = Some(at(0));
    }
    let id = before.job.id;
    tx.put(&[Change { before, after }]).expect("a row is changed");
    Some(id)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn claims_are_those_of_a_store_that_looks_at_every_row(steps in prop::collection::vec(step(), 1..80)) {
        let mut pair = Pair { memory: MemoryStore::new(), place: SqliteBench::new(), now: at(0) };
        for step in &steps {
            pair.take(step);
        }
    }
}
