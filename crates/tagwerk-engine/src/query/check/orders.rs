//! Orders of ordering keys: every job that stands in one has its place, every place has its job, and whose turn it is has it.

use std::sync::Arc;

use tagwerk_core::{JobId, Status, order};

use super::{Checked, SCAN_STEP};
use crate::row::{JobRow, Place};
use crate::store::{Listed, Read, StoreResult};

/// What puts a turn right again: any change to a job of the key has it judged anew.
const JUDGE_ANEW: &str = "enqueue a job with this key and cancel it: then the turn is given anew";

/// A job that stands in an order must be found there.
pub(super) fn check_job(read: &mut dyn Read, row: &JobRow, checked: &mut Checked) -> StoreResult<()> {
    let Some(order) = &row.order else { return Ok(()) };
    let before = JobId(row.job.id.0 - 1);
    let found = read.places((&order.key, before), 1)?;
    if found.first().is_some_and(|place| place.key == order.key && place.job == row.job.id) {
        return Ok(());
    }
    let (id, status) = (row.job.id, row.job.status.name());
    checked.find(
        "order-missing",
        format!(
            "ordering key {:?}: job {id} ({status}) has no place, so its turn never comes and it stops nobody; cancel it and \
             enqueue it again",
            order.key
        ),
    );
    Ok(())
}

/// All places, key by key.
pub(super) fn check_places(read: &mut dyn Read, checked: &mut Checked) -> StoreResult<()> {
    let mut after: (Arc<str>, JobId) = ("".into(), JobId(i64::MIN));
    let mut of_key: Option<OfKey> = None;
    loop {
        let places = read.places((&after.0, after.1), SCAN_STEP)?;
        let Some(last) = places.last() else { break };
        after = (Arc::clone(&last.key), last.job);
        for place in places {
            if of_key.as_ref().is_none_or(|of_key| of_key.key != place.key)
                && let Some(before) = of_key.replace(OfKey::new(&place.key))
            {
                before.judge(checked);
            }
            if let Some(of_key) = &mut of_key {
                let behind = JobId(place.job.0 - 1);
                let job = read.scan(behind, 1)?.pop().filter(|row| super::id_of(row) == place.job);
                of_key.add(&place, job, checked);
            }
        }
    }
    if let Some(of_key) = of_key {
        of_key.judge(checked);
    }
    Ok(())
}

/// Those of a key.
struct OfKey {
    key: Arc<str>,
    lowest: Option<(JobId, Status)>,
    running: Vec<JobId>,
    /// Waiting and not blocked.
    offered: Vec<JobId>,
    /// Somebody in it cannot be read, so nobody can say whose turn it is.
    is_unclear: bool,
}

impl OfKey {
    fn new(key: &Arc<str>) -> Self {
        let (running, offered) = (Vec::new(), Vec::new());
        Self { key: Arc::clone(key), lowest: None, running, offered, is_unclear: false }
    }

    fn add(&mut self, place: &Place, job: Option<Listed>, checked: &mut Checked) {
        let (key, id) = (&self.key, place.job);
        let row = match job {
            None => {
                let detail = format!(
                    "ordering key {key:?}: a place of job {id}, which is not there; it stops nobody, but counts as one that waits; \
                     delete the row from table job_order"
                );
                return checked.find("order-orphan", detail);
            }
            Some(Listed::Damaged { .. }) => {
                self.is_unclear = true;
                return;
            }
            Some(Listed::Job(full)) => full.row,
        };
        let status = row.job.status;
        if row.order.as_ref().is_none_or(|order| order.key != *key) {
            self.is_unclear = true;
            let detail = format!(
                "ordering key {key:?}: job {id} ({}) has a place and does not stand there; those behind it may wait for good; \
                 delete the job, then {JUDGE_ANEW}",
                status.name()
            );
            return checked.find("order-stale", detail);
        }
        let is_offered = status == Status::Pending && !row.is_blocked();
        if place.open != (is_offered || status == Status::Running) {
            let is = |open: bool| if open { "open" } else { "not open" };
            let detail = format!(
                "ordering key {key:?}: the place of job {id} ({}) says that it is {}, and it is {}; cancel the job and enqueue it \
                 again",
                status.name(),
                is(place.open),
                is(!place.open)
            );
            checked.find("order-mismatch", detail);
        }
        self.lowest = self.lowest.or(Some((id, status)));
        match status {
            Status::Running => self.running.push(id),
            _ if is_offered => self.offered.push(id),
            _ => {}
        }
    }

    fn judge(self, checked: &mut Checked) {
        let Self { key, lowest, running, offered, is_unclear } = self;
        if let [first, second, ..] = running[..] {
            let detail = format!(
                "ordering key {key:?}: jobs {first} and {second} run at the same time; look at what they did, and complete or \
                 fail them"
            );
            checked.find("order-overlap", detail);
        }
        if is_unclear {
            return;
        }
        let turn = order::turn(lowest, running.first().copied());
        for id in offered.iter().filter(|id| turn != Some(**id)) {
            let detail = format!(
                "ordering key {key:?}: job {id} may be handed out and it is not its turn; {JUDGE_ANEW}"
            );
            checked.find("order-early", detail);
        }
        if let Some(turn) = turn.filter(|turn| !offered.contains(turn)) {
            let detail = format!(
                "ordering key {key:?}: it is the turn of job {turn}, which is held back, and nobody moves; {JUDGE_ANEW}"
            );
            checked.find("order-stuck", detail);
        }
    }
}
