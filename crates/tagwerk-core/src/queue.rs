//! Controls of a queue: how much of it may run, how much may wait in it, and who has stopped it.
//!
//! Guarantees: a queue goes on only when every reason to pause it is gone; an answer to "may this start" never lets more
//! than `max_running` run, nor more than `max_running - slots` of those below the reserved priority. Deliberately absent:
//! names of queues, and how jobs are counted; the caller brings the numbers.

use crate::limits;
use crate::priority::Priority;
use crate::time::Timestamp;

/// Slots kept free for urgent jobs: those below `from_priority` use at most `max_running - slots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// How many slots.
    pub slots: u32,
    /// The lowest priority that may use them.
    pub from_priority: Priority,
}

/// Settings of a queue. `None` sets no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueSettings {
    /// Jobs that may run at the same time.
    pub max_running: Option<u32>,
    /// Slots of these that are kept for urgent jobs.
    pub reserve: Option<Reserve>,
    /// Jobs that may be pending or running; producers are refused beyond it.
    pub max_depth: Option<u64>,
}

impl QueueSettings {
    /// Whether a reserve has slots to keep and leaves some to others.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.reserve.is_none_or(|reserve| {
            reserve.slots > 0 && self.max_running.is_some_and(|max| reserve.slots < max)
        })
    }

    /// How many more jobs of this priority may start, with `running` in all and `running_below` of a priority below the
    /// reserve's. `None`: as many as there are.
    #[must_use]
    pub fn room(&self, running: u32, running_below: u32, priority: Priority) -> Option<u32> {
        let max = self.max_running?;
        let room = max.saturating_sub(running);
        Some(match self.reserve.filter(|reserve| priority < reserve.from_priority) {
            Some(reserve) => room.min(max.saturating_sub(reserve.slots).saturating_sub(running_below)),
            None => room,
        })
    }

    /// Whether one more job may be accepted into a queue in which `depth` are pending or running.
    #[must_use]
    pub fn accepts(&self, depth: u64) -> bool {
        self.max_depth.is_none_or(|max| depth < max)
    }
}

/// One reason for which a queue is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Why, in a few words; also the name under which it is lifted.
    pub reason: String,
    /// Who said so.
    pub by: Option<String>,
    /// Since when.
    pub at: Timestamp,
}

/// Producers are refused while work goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    /// Why.
    pub reason: Option<String>,
    /// Who said so.
    pub by: Option<String>,
    /// Since when.
    pub at: Timestamp,
}

/// Why a pause was not made or not lifted. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseRefusal {
    /// Several reasons hold the queue, and none was named.
    Several,
    /// Other reasons hold the queue, not this one.
    Other,
    /// It has [`limits::PAUSE_REASONS_MAX`] reasons already.
    TooMany,
}

/// Adds a reason. One that is there already stays as it is, with who said it first and when.
pub fn pause(paused: &mut Vec<Pause>, pause: Pause) -> Result<(), PauseRefusal> {
    if paused.iter().any(|known| known.reason == pause.reason) {
        return Ok(());
    }
    if paused.len() >= limits::PAUSE_REASONS_MAX {
        return Err(PauseRefusal::TooMany);
    }
    paused.push(pause);
    Ok(())
}

/// Lifts the named reason, or without a name the only one. A queue that is not paused stays so: lifting twice does no harm.
pub fn resume(paused: &mut Vec<Pause>, reason: Option<&str>) -> Result<(), PauseRefusal> {
    if paused.is_empty() {
        return Ok(());
    }
    let lifted = match reason {
        None if paused.len() > 1 => return Err(PauseRefusal::Several),
        None => 0,
        Some(reason) => paused.iter().position(|pause| pause.reason == reason).ok_or(PauseRefusal::Other)?,
    };
    paused.remove(lifted);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1);

    fn because(reason: &str) -> Pause {
        Pause { reason: reason.to_owned(), by: None, at: AT }
    }

    fn paused(reasons: &[&str]) -> Vec<Pause> {
        reasons.iter().map(|reason| because(reason)).collect()
    }

    #[test]
    fn a_reason_stands_once_with_who_said_it_first() {
        let mut reasons = Vec::new();
        let first = Pause { by: Some("ann".to_owned()), ..because("deploy") };
        assert_eq!(pause(&mut reasons, first.clone()), Ok(()));
        assert_eq!(pause(&mut reasons, Pause { by: Some("bob".to_owned()), ..because("deploy") }), Ok(()));
        assert_eq!(pause(&mut reasons, because("crm down")), Ok(()));
        assert_eq!(reasons, [first, because("crm down")]);
    }

    #[test]
    fn only_so_many_reasons_stand_side_by_side() {
        let mut reasons = Vec::new();
        for n in 0..limits::PAUSE_REASONS_MAX {
            assert_eq!(pause(&mut reasons, because(&n.to_string())), Ok(()));
        }
        assert_eq!(pause(&mut reasons, because("one more")), Err(PauseRefusal::TooMany));
        assert_eq!(pause(&mut reasons, because("0")), Ok(()), "it is there already");
        assert_eq!(reasons.len(), limits::PAUSE_REASONS_MAX);
    }

    #[test]
    fn lifting_without_a_reason_is_for_the_only_one() {
        let mut reasons = paused(&["a", "b"]);
        assert_eq!(resume(&mut reasons, None), Err(PauseRefusal::Several));
        assert_eq!(resume(&mut reasons, Some("c")), Err(PauseRefusal::Other));
        assert_eq!(reasons, paused(&["a", "b"]));
        assert_eq!(resume(&mut reasons, Some("a")), Ok(()));
        assert_eq!(reasons, paused(&["b"]));
        assert_eq!(resume(&mut reasons, None), Ok(()));
        assert_eq!(reasons, []);
        assert_eq!(resume(&mut reasons, None), Ok(()));
        assert_eq!(resume(&mut reasons, Some("a")), Ok(()));
    }

    #[test]
    fn a_reserve_leaves_slots_to_others_and_needs_a_bound() {
        let reserve = |slots| Some(Reserve { slots, from_priority: Priority::DEFAULT });
        let sound = |max_running, slots| {
            QueueSettings { max_running, reserve: reserve(slots), max_depth: None }.is_sound()
        };
        assert!(QueueSettings::default().is_sound());
        assert!(sound(Some(2), 1));
        assert!(!sound(Some(2), 2) && !sound(Some(2), 0) && !sound(None, 1) && !sound(Some(0), 1));
    }
}
