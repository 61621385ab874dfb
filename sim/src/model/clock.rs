//! When leases are moved along with time in which nobody could report. Section 7 of the semantics.

/// A gap in serving that is longer counts.
const GAP_MS: i64 = 3_000;
/// No gap moves leases by more.
const GAP_CAP_MS: i64 = 3_600_000;
/// A difference between the clocks from which on the wall clock has stepped.
const STEP_MS: i64 = 500;
/// `served_until` is rewritten at least this often while somebody serves.
const SERVED_EVERY_MS: i64 = 1_000;

/// The clocks as one node last saw them in a batch that was committed.
#[derive(Clone, Debug)]
pub(crate) struct NodeClock {
    wall: i64,
    mono: i64,
    /// Until when the store said that it was served, until the first batch is committed.
    found: Option<i64>,
    marked: Option<i64>,
}

impl NodeClock {
    /// A node starts and finds this in the store.
    pub(crate) const fn started(wall: i64, mono: i64, served_until: Option<i64>) -> Self {
        Self { wall, mono, found: served_until, marked: None }
    }

    /// By how much the batch that begins now has to move live leases.
    pub(crate) fn shift(&self, wall: i64, mono: i64) -> i64 {
        if let Some(found) = self.found {
            let gap = wall - found;
            return if gap > GAP_MS {
                gap.min(GAP_CAP_MS)
            } else if gap <= -STEP_MS {
                gap
            } else {
                0
            };
        }
        let passed = mono - self.mono;
        let gap = if passed > GAP_MS { passed.min(GAP_CAP_MS) } else { 0 };
        let step = (wall - self.wall) - passed;
        gap + if step.abs() >= STEP_MS { step } else { 0 }
    }

    /// A batch was committed. `Err` if the store was not told in time that it is served.
    pub(crate) fn committed(&mut self, at: (i64, i64), served: Option<i64>) -> Result<(), String> {
        let (wall, mono) = at;
        self.wall = wall;
        self.mono = mono;
        self.found = None;
        match served {
            Some(until) if until != wall => {
                return Err(format!("served_until was set to {until}, it is {wall}"));
            }
            Some(_) => self.marked = Some(mono),
            None if self.marked.is_none_or(|marked| mono - marked >= SERVED_EVERY_MS) => {
                return Err("served_until was not rewritten for a second or more".to_owned());
            }
            None => {}
        }
        Ok(())
    }
}
