//! Queues that are paused, as the one writer knows them. A claim passes over all their lanes, whoever asks and however the
//! jobs came there. What is in memory is what is in the file: after a rollback that touched it, it is read anew.

use std::collections::HashSet;

use rusqlite::Connection;
use tagwerk_engine::row::{LaneId, QueueRow};

use crate::codec::queue;
use crate::error::Res;
use crate::lanes::Lanes;

/// Names of the queues.
#[derive(Debug, Default)]
pub(crate) struct Paused {
    queues: HashSet<String>,
    /// Changed by the open transaction.
    is_touched: bool,
}

impl Paused {
    /// As it is in the file.
    pub(crate) fn read(conn: &Connection) -> Res<Self> {
        let rows = queue::read_all(conn)?;
        let paused = rows.into_iter().filter(|row| !row.paused.is_empty()).map(|row| row.name);
        Ok(Self { queues: paused.collect(), is_touched: false })
    }

    /// The classes that a claim looks at, without those of paused queues; `None` = all. Costs nothing while no queue is
    /// paused.
    pub(crate) fn leave_out(&self, lanes: &Lanes, classes: Option<Vec<LaneId>>) -> Option<Vec<LaneId>> {
        if self.queues.is_empty() {
            return classes;
        }
        let mut open = classes.unwrap_or_else(|| {
            let mut all: Vec<LaneId> = lanes.classes().collect();
            all.sort_unstable();
            all
        });
        open.retain(|class| lanes.get(*class).is_none_or(|lane| !self.queues.contains(&*lane.queue)));
        Some(open)
    }

    /// A row was written.
    pub(crate) fn note(&mut self, row: &QueueRow) {
        self.is_touched = true;
        if row.paused.is_empty() {
            self.queues.remove(&row.name);
        } else {
            self.queues.insert(row.name.clone());
        }
    }

    /// The transaction was committed.
    pub(crate) fn settle(&mut self) {
        self.is_touched = false;
    }

    /// The transaction was rolled back.
    pub(crate) fn revert(&mut self, conn: &Connection) -> Res<()> {
        if self.is_touched {
            *self = Self::read(conn)?;
        }
        Ok(())
    }
}
