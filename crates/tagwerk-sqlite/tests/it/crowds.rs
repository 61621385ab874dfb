//! The engine over a store with many jobs: who waits for whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tagwerk_core::{JobId, Priority, QueueSettings, Reserve};
use tagwerk_engine::command::{Claim, Claimed, ControlQueue, EnqueueJob, QueueControl};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::row::Ordering;

use crate::engine::{answered, claim, job};
use crate::rig::Rig;

const LOW: u8 = 0;
const CRITICAL: u8 = 30;

fn enqueue_one(rig: &mut Rig, priority: u8) -> JobId {
    rig.enqueue(vec![of_priority(priority)])[0]
}

/// As a bulk import does it: calls of 1,000 jobs.
fn import(rig: &mut Rig, jobs: usize) {
    for _ in 0..jobs / 1_000 {
        rig.enqueue(vec![of_priority(LOW); 1_000]);
    }
}

fn of_priority(priority: u8) -> EnqueueJob {
    EnqueueJob { priority: Priority::from_value(priority), ..job() }
}

fn id(claimed: &Claimed) -> JobId {
    claimed.job.row.job.id
}

/// While 100 keys have a job that may run, each claim of 100 is given 100: no key waits for another's. Of each key the jobs
/// come one at a time and in their order.
#[test]
fn five_thousand_keys_in_parallel_fill_every_claim() {
    const KEYS: usize = 5_000;
    const OF_EACH: usize = 3;
    let mut rig = Rig::new();
    let keyed = |n: usize| {
        let ordering = Ordering { key: format!("key-{}", n % KEYS).into(), on_head_failure: None };
        EnqueueJob { ordering: Some(Box::new(ordering)), ..of_priority(LOW) }
    };
    for first in (0..KEYS * OF_EACH).step_by(1_000) {
        rig.enqueue((first..first + 1_000).map(keyed).collect());
    }
    let mut came: BTreeMap<Arc<str>, Vec<JobId>> = BTreeMap::new();
    let mut held = Vec::new();
    for left in (1..=KEYS * OF_EACH / 100).rev() {
        held = rig.next(&held, 100);
        assert_eq!(held.len(), 100, "{left} claims before the end");
        let mut keys = BTreeSet::new();
        for claimed in &held {
            let key = Arc::clone(&claimed.job.row.order.as_ref().expect("it has a key").key);
            assert!(keys.insert(Arc::clone(&key)), "two jobs of {key} run at once");
            came.entry(key).or_default().push(id(claimed));
        }
    }
    assert!(rig.next(&held, 100).is_empty());
    assert_eq!(came.len(), KEYS);
    assert!(
        came.values().all(|ids| ids.len() == OF_EACH && ids.is_sorted()),
        "in the order of their enqueues"
    );
}

/// The import has begun and all workers run something of it: a critical job is what the first of them that is done gets next.
#[test]
fn a_critical_job_behind_a_hundred_thousand_waits_for_one_running_job() {
    let mut rig = Rig::new();
    import(&mut rig, 10_000);
    let mut busy: Vec<Vec<Claimed>> = (0..4).map(|_| rig.next(&[], 1)).collect();
    for part in 0..3 {
        import(&mut rig, 30_000);
        let critical = enqueue_one(&mut rig, CRITICAL);
        let done = busy.remove(part);
        let next = rig.next(&done, 1);
        assert_eq!(next.iter().map(id).collect::<Vec<_>>(), [critical], "part {part}");
        busy.push(next);
    }
    let more = rig.next(&[], 1);
    assert_eq!(more[0].job.row.priority.value(), LOW, "the import goes on");
}

/// With a slot in reserve the worker on it waits beside the import, and starts the critical job in the batch that accepts it.
#[test]
fn with_a_reserve_a_critical_job_beside_a_hundred_thousand_waits_for_none() {
    let mut rig = Rig::new();
    let from_priority = Priority::from_value(CRITICAL).expect("a priority");
    let reserve = Some(Reserve { slots: 1, from_priority });
    let settings = QueueSettings { max_running: Some(4), reserve, max_depth: None };
    let control = ControlQueue { queue: "default".to_owned(), control: QueueControl::Set(settings) };
    let set = rig.send(|reply| Message::ControlQueue(control, By::local(), Box::new(reply)));
    assert!(answered(&set).is_ok());
    import(&mut rig, 100_000);
    let busy = rig.next(&[], 100);
    assert_eq!(busy.len(), 3, "one slot is kept free");
    let waiting = rig.send(|reply| Message::Claim(Claim { wait_ms: 60_000, ..claim(4, 1) }, Box::new(reply)));
    assert!(waiting.try_recv().is_err(), "it is not for the import");
    let critical = enqueue_one(&mut rig, CRITICAL);
    let started = answered(&waiting).jobs;
    assert_eq!(started.iter().map(id).collect::<Vec<_>>(), [critical]);
    // Now all four slots are taken, and the next critical job waits for one of them.
    let second = enqueue_one(&mut rig, CRITICAL);
    assert!(rig.next(&[], 1).is_empty());
    let next = rig.next(&busy[..1], 1);
    assert_eq!(next.iter().map(id).collect::<Vec<_>>(), [second]);
}
