//! Everything that may stand in the way of a claim without being what it looks for.
//!
//! - 10^6 jobs that are scheduled for later;
//! - 10^5 jobs blocked by 10^4 ordering keys, whose heads are scheduled for later, run, or failed and hold the key;
//! - 10^5 more urgent jobs behind 10^3 full limits;
//! - 10^5 less urgent jobs of 10^4 fair keys.

use std::sync::Arc;

use tagwerk_core::gate::LimitSettings;
use tagwerk_core::{OnHeadFailure, Status};
use tagwerk_engine::row::{LimitRef, Order, Ordering, Special};
use tagwerk_engine::store::SpecialName;

use crate::line::{Line, TYPES, fair};
use crate::steps::{Draft, at, inserts, job_of, put, settled, started, write};

const FAR_MS: i64 = 4_000_000_000_000;
const SCHEDULED: usize = 1_000_000;
const KEYS: usize = 10_000;
const BEHIND_EACH_KEY: usize = 10;
const LIMITS: usize = 1_000;
const BEHIND_EACH_LIMIT: usize = 100;
const FAIR_KEYS: usize = 10_000;
const OF_EACH_FAIR_KEY: usize = 10;
/// Jobs or keys of one transaction.
const AT_ONCE: usize = 1_000;

/// Adds all of it.
pub(crate) fn add(line: &mut Line) {
    for n in 0..SCHEDULED / AT_ONCE {
        add_special(line, &vec![Draft { due: at(FAR_MS), ..job_of(TYPES[n % 4]) }; AT_ONCE], None);
    }
    for first in (0..KEYS).step_by(AT_ONCE) {
        add_keys(line, first..first + AT_ONCE);
    }
    let closed = LimitSettings { max_running: Some(0), rate: None };
    write(&mut line.store, |tx| tx.put_limit("closed", Some(&closed)).expect("a limit"));
    for n in 0..LIMITS {
        let limits = vec![LimitRef::parse(&format!("closed:{n}"))];
        let urgent = Draft { priority: 20, ..job_of(TYPES[n % 4]) };
        add_special(line, &vec![urgent; BEHIND_EACH_LIMIT], Some(&Special { limits, fair_key: None }));
    }
    for n in 0..FAIR_KEYS {
        let low = Draft { priority: 0, ..job_of(TYPES[n % 4]) };
        add_special(line, &vec![low; OF_EACH_FAIR_KEY], Some(&fair(n.to_string())));
    }
}

fn add_special(line: &mut Line, drafts: &[Draft], special: Option<&Special>) {
    write(&mut line.store, |tx| {
        let mut jobs = inserts(tx, drafts);
        if let Some(special) = special {
            let name = SpecialName { queue: &drafts[0].queue, kind: &drafts[0].kind, special, space: None };
            let special = tx.intern_special(&[name]).expect("a lane").remove(0);
            for insert in &mut jobs {
                insert.row.lane = special.clone();
            }
        }
        tx.insert(&jobs).expect("jobs are inserted");
    });
}

/// Of each key a head and those behind it. The heads of the first kind stay as they are, the second run, the third failed.
fn add_keys(line: &mut Line, keys: std::ops::Range<usize>) {
    let drafts: Vec<Draft> = keys
        .clone()
        .flat_map(|key| {
            let head = Draft { due: at(FAR_MS), ..job_of(TYPES[key % 4]) };
            let behind = vec![Draft { due: at(0), ..head.clone() }; BEHIND_EACH_KEY];
            std::iter::once(head).chain(behind)
        })
        .collect();
    write(&mut line.store, |tx| {
        let mut jobs = inserts(tx, &drafts);
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for (key, of_key) in keys.zip(jobs.chunks_mut(BEHIND_EACH_KEY + 1)) {
            let name: Arc<str> = format!("key-{key}").into();
            for (n, insert) in of_key.iter_mut().enumerate() {
                let on_head_failure = OnHeadFailure::Block;
                insert.row.order =
                    Some(Box::new(Order { key: Arc::clone(&name), on_head_failure, blocked: n > 0 }));
                let given = Ordering { key: Arc::clone(&name), on_head_failure: None };
                insert.detail.ordering = Some(Box::new(given));
            }
            let waiting = of_key[0].row.clone();
            let running = started(&waiting, at(0));
            if key % 3 > 0 {
                starts.push((waiting, running.clone()));
            }
            if key % 3 == 2 {
                let failed = settled(&running, Status::Failed, at(0));
                ends.push((running, failed));
            }
        }
        tx.insert(&jobs).expect("jobs are inserted");
        put(tx, &starts);
        put(tx, &ends);
    });
}
