//! What `/metrics` shows of alerts: those that are open by kind, and how telling of them went.

use std::sync::atomic::{AtomicI64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tagwerk_core::Timestamp;
use tagwerk_core::alert::Kind;
use tagwerk_engine::watch::RunTimes;

use super::{Labels, Metrics, Scrape, Seconds, seconds};

/// What is counted in memory.
#[derive(Default)]
pub(super) struct Counts {
    told: Family<Labels, Counter>,
    /// When it was last looked and written, in milliseconds since the epoch; 0: never.
    looked: AtomicI64,
}

impl Metrics {
    /// Run times, for alerts.
    pub(crate) const fn run_times(&self) -> &RunTimes {
        &self.run_times
    }

    /// Telling of an alert came to this end.
    pub(crate) fn alert_told(&self, way: &'static str, outcome: &'static str) {
        let labels = vec![("way", way.to_owned()), ("outcome", outcome.to_owned())];
        self.alerts.told.get_or_create(&labels).inc();
    }

    /// It was looked whether something rings.
    pub(crate) fn looked(&self, at: Timestamp) {
        self.alerts.looked.store(at.as_millis(), Ordering::Relaxed);
    }

    /// When that was.
    pub(crate) fn last_look(&self) -> Option<Timestamp> {
        let ms = self.alerts.looked.load(Ordering::Relaxed);
        (ms != 0).then(|| Timestamp::from_millis(ms))
    }

    pub(super) fn add_alerts(&self, registry: &mut Registry, scrape: &Scrape) {
        let open = Family::<Labels, Gauge>::default();
        let unseen = Family::<Labels, Gauge>::default();
        for kind in Kind::ALL {
            let labels = vec![("kind", kind.name().to_owned())];
            let of_kind = || scrape.alerts.iter().filter(|alert| alert.kind == kind);
            let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
            open.get_or_create(&labels).set(count(of_kind().count()));
            let nobody = of_kind().filter(|alert| alert.acknowledged.is_none());
            unseen.get_or_create(&labels).set(count(nobody.count()));
        }
        registry.register("alerts", "Alerts that are open", open);
        registry.register("alerts_unacknowledged", "Open alerts that nobody looks after", unseen);
        // Both ways are there from the start, so that a rate of them has a beginning.
        for way in ["command", "webhook"] {
            for outcome in ["delivered", "failed"] {
                let labels = vec![("way", way.to_owned()), ("outcome", outcome.to_owned())];
                drop(self.alerts.told.get_or_create(&labels));
            }
        }
        let help = "Tries to tell of an alert, by the way and how it went";
        registry.register("alert_messages", help, self.alerts.told.clone());
        if let Some(at) = self.last_look() {
            let age = Seconds::default();
            age.set(seconds(scrape.now.since_ms(at).max(0)));
            registry.register(
                "alerts_look_age_seconds",
                "Time since it was last looked whether something rings",
                age,
            );
        }
    }
}
