//! Rates are kept: never more than `count` starts in any window of the period. Section 6.
//!
//! Time is what the wall clock has gone forward in all, since a clock that is put forward may open a rate early. After a
//! change of the rate the starts count on that both periods can still see: a change is met at the next claim.

use std::collections::BTreeMap;

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::rate::Rate;
use tagwerk_engine::row::{JobRow, LimitRef};

use super::{At, Broken, Event, Invariant, started};
use crate::plan::Caps;
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct Rates {
    limits: BTreeMap<String, Rate>,
    /// When jobs were handed out under a limit, and the shortest period since.
    starts: BTreeMap<LimitRef, Vec<(i64, i64)>>,
    wall: Option<i64>,
    forward: i64,
}

impl Rates {
    pub(super) fn new(caps: Option<&Caps>) -> Self {
        let limits = caps.into_iter().flat_map(|caps| &caps.limits);
        let rates = limits.filter_map(|(name, settings)| Some((name.clone(), settings.rate?)));
        Self { limits: rates.collect(), ..Self::default() }
    }

    fn put(&mut self, name: &str, settings: Option<&LimitSettings>) {
        let new = settings.and_then(|settings| settings.rate);
        let old = self.limits.remove(name);
        if let Some(rate) = new {
            self.limits.insert(name.to_owned(), rate);
        }
        if old == new {
            return;
        }
        let forward = self.forward;
        for (_, starts) in self.starts.iter_mut().filter(|(limit, _)| limit.name == name) {
            // Gone with the limit, or without a rate that would look at them.
            let seen = old.filter(|_| new.is_some()).map_or(0, |old| old.per_ms);
            starts.retain(|(start, _)| forward - start < seen);
            for (_, known) in starts {
                *known = new.map_or(*known, |new| new.per_ms.min(*known));
            }
        }
    }

    fn start(&mut self, row: &JobRow) -> Result<(), Broken> {
        for limit in row.lane.limits() {
            let Some(rate) = self.limits.get(&limit.name) else { continue };
            let starts = self.starts.entry(limit.clone()).or_default();
            starts.push((self.forward, rate.per_ms));
            let recent =
                starts.iter().filter(|(start, known)| self.forward - start < rate.per_ms.min(*known)).count();
            if recent > rate.count as usize {
                let what = format!("it is start {recent} under {limit} within {} ms: {rate:?}", rate.per_ms);
                return Err((Some(row.job.id), what));
            }
        }
        Ok(())
    }
}

impl Invariant for Rates {
    fn name(&self) -> &'static str {
        "never more starts in a period than a rate allows"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        self.forward += (at.now - self.wall.unwrap_or(at.now)).max(0);
        self.wall = Some(at.now);
        match event {
            Event::Wrote(Write::Limit(name, settings)) => self.put(name, settings.as_ref()),
            Event::Wrote(write) => {
                if let Some(row) = started(write) {
                    return self.start(row);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
