//! What `/metrics` shows: counts from the ledger (kept in the jobs' own transactions), what is ready, and how the
//! committer does. Labels are types and queues, a bounded number of them; never a worker, a key or an id.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter as Count;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tagwerk_core::{Status, Timestamp, limits};
use tagwerk_engine::ports::Observer;
use tagwerk_engine::query::QueueView;
use tagwerk_engine::row::{AlertRow, Counter, Lane, Tally};
use tagwerk_engine::store::{LaneReady, StoreFacts};
use tagwerk_engine::watch::RunTimes;

mod alerts;

/// Stands for all types and queues that have no series of their own.
const OTHER: &str = "other";
/// Run times of attempts: from a moment to an hour.
const RUN_SECONDS: [f64; 11] = [0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0];
/// Times of commits: a fast disk needs a tenth of a millisecond, a busy one a second.
const COMMIT_SECONDS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0];
/// Requests of a batch, up to the most that one takes.
const BATCH_REQUESTS: [f64; 8] = [1.0, 2.0, 4.0, 16.0, 64.0, 256.0, 512.0, 1024.0];

/// What a label is: its name and its value.
type Labels = Vec<(&'static str, String)>;
type Seconds = Gauge<f64, AtomicU64>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The first names that came, up to a limit.
#[derive(Default)]
struct Names(Mutex<HashSet<String>>);

impl Names {
    /// The name, or `other` when there are too many already.
    fn label(&self, name: &str) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(name) {
            if known.len() >= limits::METRIC_NAMES_MAX {
                return OTHER.to_owned();
            }
            known.insert(name.to_owned());
        }
        name.to_owned()
    }
}

/// What is counted in memory.
pub(crate) struct Metrics {
    types: Names,
    queues: Names,
    limits: Names,
    run_seconds: Histograms,
    commit_seconds: Histogram,
    batch_requests: Histogram,
    commits: AtomicI64,
    requests: AtomicI64,
    connections: Gauge,
    run_times: RunTimes,
    alerts: alerts::Counts,
}

/// What is read for one look at the metrics.
pub(crate) struct Scrape {
    /// Counts by queue and type.
    pub(crate) ledger: Vec<(Lane, Tally)>,
    /// What could be handed out.
    pub(crate) ready: Vec<LaneReady>,
    /// All queues.
    pub(crate) queues: Vec<QueueView>,
    /// Limits: name, running jobs, how many may run. Empty if the committer does not answer.
    pub(crate) limits: Vec<(String, u64, Option<u32>)>,
    /// The store.
    pub(crate) facts: StoreFacts,
    /// The present.
    pub(crate) now: Timestamp,
    /// Claims that wait.
    pub(crate) parked: usize,
    /// Whether writing fails.
    pub(crate) failing: bool,
    /// Alerts that are open.
    pub(crate) alerts: Vec<AlertRow>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            types: Names::default(),
            queues: Names::default(),
            limits: Names::default(),
            run_seconds: Family::new_with_constructor(|| Histogram::new(RUN_SECONDS)),
            commit_seconds: Histogram::new(COMMIT_SECONDS),
            batch_requests: Histogram::new(BATCH_REQUESTS),
            commits: AtomicI64::new(0),
            requests: AtomicI64::new(0),
            connections: Gauge::default(),
            run_times: RunTimes::default(),
            alerts: alerts::Counts::default(),
        }
    }
}

impl Observer for Metrics {
    fn committed(&self, commands: usize, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
        let commands = u32::try_from(commands).unwrap_or(u32::MAX);
        self.batch_requests.observe(f64::from(commands));
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(i64::from(commands), Ordering::Relaxed);
    }

    fn attempt_ended(&self, kind: &str, run_ms: i64) {
        self.run_times.note(kind, run_ms);
        let labels = vec![("type", self.types.label(kind))];
        self.run_seconds.get_or_create(&labels).observe(seconds(run_ms));
    }
}

impl Metrics {
    /// Commits since the start, and the requests that they carried.
    pub(crate) fn commits(&self) -> (i64, i64) {
        (self.commits.load(Ordering::Relaxed), self.requests.load(Ordering::Relaxed))
    }

    /// A connection was opened; it counts until what is returned is dropped.
    pub(crate) fn connected(&self) -> Connected {
        self.connections.inc();
        Connected(self.connections.clone())
    }

    /// Everything as `OpenMetrics` text.
    pub(crate) fn write(&self, scrape: &Scrape) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::with_prefix("tagwerk");
        self.add_ledger(&mut registry, scrape);
        self.add_queues(&mut registry, scrape);
        self.add_limits(&mut registry, scrape);
        self.add_server(&mut registry, scrape);
        self.add_alerts(&mut registry, scrape);
        let mut text = String::new();
        text::encode(&mut text, &registry)?;
        Ok(text)
    }

    /// Jobs and events by type, from the ledger.
    fn add_ledger(&self, registry: &mut Registry, scrape: &Scrape) {
        let mut lanes: Vec<&(Lane, Tally)> = scrape.ledger.iter().collect();
        // In the order in which they came into being, so that a restart gives the same types a series of their own.
        lanes.sort_by_key(|(lane, _)| lane.id);
        let mut by_type: BTreeMap<String, Tally> = BTreeMap::new();
        for (lane, tally) in lanes {
            by_type.entry(self.types.label(&lane.kind)).or_default().merge(tally);
        }
        let depth = Family::<Labels, Gauge>::default();
        for (kind, tally) in &by_type {
            for status in Status::ALL {
                let labels = vec![("type", kind.clone()), ("status", status.name().to_owned())];
                depth.get_or_create(&labels).set(tally.get(Counter::of_status(status)));
            }
        }
        registry.register("jobs", "Jobs by type and status", depth);
        for (name, help, counter) in EVENTS {
            let family = Family::<Labels, Count>::default();
            for (kind, tally) in &by_type {
                let count = u64::try_from(tally.get(counter)).unwrap_or_default();
                family.get_or_create(&vec![("type", kind.clone())]).inc_by(count);
            }
            registry.register(name, help, family);
        }
        let oldest = Family::<Labels, Seconds>::default();
        for kind in by_type.keys() {
            oldest.get_or_create(&vec![("type", kind.clone())]).set(0.0);
        }
        for lane in &scrape.ready {
            raise(&oldest, ("type", self.types.label(&lane.lane.kind)), scrape.now.since_ms(lane.oldest_due));
        }
        registry.register(
            "oldest_ready_age_seconds",
            "Age of the oldest job that could be handed out",
            oldest,
        );
    }

    /// Jobs by queue, and when somebody last asked.
    fn add_queues(&self, registry: &mut Registry, scrape: &Scrape) {
        let depth = Family::<Labels, Gauge>::default();
        let blocked = Family::<Labels, Gauge>::default();
        let oldest = Family::<Labels, Seconds>::default();
        let asked = Family::<Labels, Seconds>::default();
        let paused = Family::<Labels, Gauge>::default();
        let draining = Family::<Labels, Gauge>::default();
        for queue in &scrape.queues {
            let label = self.queues.label(&queue.queue);
            for status in Status::ALL {
                let labels = vec![("queue", label.clone()), ("status", status.name().to_owned())];
                depth.get_or_create(&labels).inc_by(queue.tally.get(Counter::of_status(status)));
            }
            let ready_ms = queue.oldest_ready.map_or(0, |since| scrape.now.since_ms(since));
            raise(&oldest, ("queue", label.clone()), ready_ms);
            let labels = vec![("queue", label.clone())];
            blocked.get_or_create(&labels).inc_by(queue.tally.get(Counter::Blocked));
            let reasons = i64::try_from(queue.said.paused.len()).unwrap_or(i64::MAX);
            paused.get_or_create(&labels).inc_by(reasons);
            draining.get_or_create(&labels).inc_by(i64::from(queue.said.draining.is_some()));
            if let Some(at) = queue.last_claim_at {
                raise(&asked, ("queue", label), scrape.now.since_ms(at));
            }
        }
        registry.register(
            "queue_blocked_jobs",
            "Pending jobs of the queue behind others of their key",
            blocked,
        );
        registry.register("queue_jobs", "Jobs by queue and status", depth);
        registry.register("queue_paused", "Reasons for which the queue is paused", paused);
        registry.register("queue_draining", "Whether the queue refuses new jobs", draining);
        let help = "Age of the oldest job of the queue that could be handed out";
        registry.register("queue_oldest_ready_age_seconds", help, oldest);
        registry.register("queue_last_claim_age_seconds", "Time since a worker last asked the queue", asked);
    }

    /// What runs under limits, all partitions of one together.
    fn add_limits(&self, registry: &mut Registry, scrape: &Scrape) {
        let running = Family::<Labels, Gauge>::default();
        let most = Family::<Labels, Gauge>::default();
        for (name, now, max_running) in &scrape.limits {
            let labels = vec![("limit", self.limits.label(name))];
            running.get_or_create(&labels).inc_by(i64::try_from(*now).unwrap_or(i64::MAX));
            if let Some(max_running) = max_running {
                most.get_or_create(&labels).inc_by(i64::from(*max_running));
            }
        }
        registry.register("limit_running", "Jobs that run under the limit, all partitions together", running);
        registry.register(
            "limit_max_running",
            "Jobs that may run under the limit, or each partition of it",
            most,
        );
    }

    /// How the server itself does.
    fn add_server(&self, registry: &mut Registry, scrape: &Scrape) {
        let help = "Run times of attempts that ended by a report";
        registry.register("attempt_run_seconds", help, self.run_seconds.clone());
        let help = "Time from the start of a transaction to the end of its commit";
        registry.register("commit_seconds", help, self.commit_seconds.clone());
        registry.register("commit_requests", "Requests that shared a commit", self.batch_requests.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        let gauges = [
            ("parked_claims", "Claims that wait for a job", i64::try_from(scrape.parked).unwrap_or(i64::MAX)),
            ("store_failing", "1 while the store cannot be written", i64::from(scrape.failing)),
            ("store_bytes", "Size of the store", i64::try_from(scrape.facts.bytes).unwrap_or(i64::MAX)),
            (
                "store_wal_bytes",
                "Size of its write-ahead log",
                i64::try_from(scrape.facts.wal_bytes).unwrap_or(i64::MAX),
            ),
        ];
        let damaged = i64::try_from(scrape.facts.damaged_rows).unwrap_or(i64::MAX);
        let damaged = ("damaged_rows", "Rows met since the start that could not be read", damaged);
        for (name, help, value) in gauges.into_iter().chain([damaged]) {
            let gauge = Gauge::<i64, AtomicI64>::default();
            gauge.set(value);
            registry.register(name, help, gauge);
        }
        let build = Family::<Labels, Gauge>::default();
        build.get_or_create(&vec![("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        registry.register("build", "This program", build);
    }
}

/// Events that only rise: name, help, counter of the ledger.
const EVENTS: [(&str, &str, Counter); 11] = [
    ("enqueues", "Jobs accepted", Counter::Enqueued),
    ("claims", "Leases granted", Counter::Claims),
    ("completions", "Reports of completion that counted", Counter::Completions),
    ("failures", "Reports of a failure that counted", Counter::Failures),
    ("retries", "Requeues after a failure, a loss or a time-out", Counter::Retries),
    ("lease_losses", "Leases that ran out", Counter::LeaseLosses),
    ("time_outs", "Attempts that reached their time limit", Counter::TimeOuts),
    ("releases", "Attempts given back", Counter::Releases),
    ("reviews", "Entries into review", Counter::Reviews),
    ("review_retries", "Retries from review", Counter::ReviewRetries),
    ("pruned", "Jobs deleted", Counter::Pruned),
];

/// An open connection, as long as it is open.
pub(crate) struct Connected(Gauge);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The larger of what is there and this.
fn raise(family: &Family<Labels, Seconds>, label: (&'static str, String), ms: i64) {
    let gauge = family.get_or_create_owned(&vec![label]);
    gauge.set(gauge.get().max(seconds(ms.max(0))));
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 285,000 years; beyond that a millisecond is nothing"
)]
fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use tagwerk_engine::row::LaneId;

    use super::*;

    fn lane(id: i64, kind: &str) -> (Lane, Tally) {
        let mut tally = Tally::default();
        tally.add(Counter::Enqueued, 2);
        tally.add(Counter::Pending, 2);
        let id = LaneId(id);
        (
            Lane { id, class: id, queue: "default".into(), kind: kind.into(), space: None, special: None },
            tally,
        )
    }

    fn scrape(ledger: Vec<(Lane, Tally)>) -> Scrape {
        let now = Timestamp::from_millis(10_500);
        let ready = ledger
            .iter()
            .map(|(lane, _)| LaneReady { lane: lane.clone(), oldest_due: now.plus_ms(-1_500) })
            .collect();
        Scrape {
            ledger,
            ready,
            queues: Vec::new(),
            limits: vec![("crm".to_owned(), 3, Some(5)), ("mail".to_owned(), 7, None)],
            facts: StoreFacts::default(),
            now,
            parked: 3,
            failing: false,
            alerts: Vec::new(),
        }
    }

    #[test]
    fn labels_are_types_and_statuses() {
        let metrics = Metrics::default();
        metrics.committed(3, Duration::from_millis(4));
        metrics.attempt_ended("send", 2_000);
        let _open = metrics.connected();
        let text = metrics.write(&scrape(vec![lane(1, "send"), lane(2, "App\\Jobs\\\"X\"")])).unwrap();
        for line in [
            "tagwerk_jobs{type=\"send\",status=\"pending\"} 2",
            "tagwerk_enqueues_total{type=\"send\"} 2",
            "tagwerk_enqueues_total{type=\"App\\\\Jobs\\\\\\\"X\\\"\"} 2",
            "tagwerk_oldest_ready_age_seconds{type=\"send\"} 1.5",
            "tagwerk_attempt_run_seconds_bucket{le=\"5.0\",type=\"send\"} 1",
            "tagwerk_commit_requests_sum 3.0",
            "tagwerk_parked_claims 3",
            "tagwerk_limit_running{limit=\"crm\"} 3",
            "tagwerk_limit_max_running{limit=\"crm\"} 5",
            "tagwerk_limit_running{limit=\"mail\"} 7",
            "tagwerk_connections 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing:\n{text}");
        }
        assert!(!text.contains("tagwerk_limit_max_running{limit=\"mail\"}"));
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn f150_ten_thousand_types_do_not_make_ten_thousand_series() {
        let metrics = Metrics::default();
        let many = (0..10_000).map(|n| lane(n, &format!("type-{n}"))).collect();
        for n in 0..10_000 {
            metrics.attempt_ended(&format!("type-{n}"), 1);
        }
        let text = metrics.write(&scrape(many)).unwrap();
        let rest = 2 * (10_000 - limits::METRIC_NAMES_MAX);
        assert!(text.contains(&format!("tagwerk_enqueues_total{{type=\"other\"}} {rest}")));
        assert!(text.contains("tagwerk_enqueues_total{type=\"type-0\"} 2"));
        assert!(text.len() < 500_000, "{}", text.len());
    }
}
