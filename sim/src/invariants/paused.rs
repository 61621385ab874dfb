//! Nothing of a paused queue is handed out, whoever asks and however the job came back. Section 6.
//!
//! And a queue goes on only when every reason is gone: what lifts a pause is known from what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use super::{At, Broken, Event, Invariant, started};
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct Paused {
    /// Queues with their reasons, as written.
    queues: BTreeMap<String, BTreeSet<String>>,
}

impl Paused {
    fn written(&mut self, row: &tagwerk_engine::row::QueueRow) -> Result<(), Broken> {
        let now: BTreeSet<String> = row.paused.iter().map(|pause| pause.reason.clone()).collect();
        let before = self.queues.insert(row.name.clone(), now.clone()).unwrap_or_default();
        let lifted = before.difference(&now).count();
        if lifted > 1 {
            let what = format!("queue {} had the reasons {before:?}, and one call left {now:?}", row.name);
            return Err((None, what));
        }
        Ok(())
    }
}

impl Invariant for Paused {
    fn name(&self) -> &'static str {
        "a paused queue is silent"
    }

    fn see(&mut self, _: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Wrote(Write::Queue(row)) => return self.written(row),
            Event::Wrote(write) => {
                if let Some(row) = started(write)
                    && let Some(reasons) = self.queues.get(&*row.lane.queue).filter(|set| !set.is_empty())
                {
                    let what = format!("it was handed out while its queue is paused for {reasons:?}");
                    return Err((Some(row.job.id), what));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
