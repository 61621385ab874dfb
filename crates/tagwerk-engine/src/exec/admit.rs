//! What the settings of a type let its jobs ask for: queues, priority, size of the payload, and whether the type may be
//! unknown.
//!
//! Guarantees: nothing is changed silently; what is not allowed is refused. It is asked for what is about to be stored: a new
//! job, or one that is rewritten. A job that was accepted stays as it is when the settings change later, and its producer,
//! who sends it again with its key, hears of it as before.

use std::sync::Arc;

use tagwerk_core::Priority;
use tagwerk_core::access::Reach;

use crate::command::{EnqueueJob, Refusal};
use crate::exec::defaults::queue_of;
use crate::exec::enqueue::payload_of;
use crate::row::TypeSettings;
use crate::settings::UnknownTypes;
use crate::work::Env;

/// Refused jobs of one request whose type is looked up among the known ones, which takes time for each.
const NAMED_MAX: usize = 10;

/// Judges the jobs of one request.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    known: Option<Arc<[String]>>,
    named: usize,
}

impl Admission {
    /// Why this job may not be stored, if it may not.
    pub(crate) fn refusal(&mut self, env: &Env<'_>, job: &EnqueueJob) -> Option<Refusal> {
        match env.types.get(&job.kind) {
            Some(settings) => payload(settings, payload_of(job)).or_else(|| forbidden(settings, job)),
            None if env.settings.unknown_types == UnknownTypes::Refuse => Some(self.unknown(env, job)),
            None => None,
        }
    }

    fn unknown(&mut self, env: &Env<'_>, job: &EnqueueJob) -> Refusal {
        self.named += 1;
        let known = if self.named > NAMED_MAX {
            Arc::default()
        } else {
            let names = || {
                let mut names: Vec<String> = env.types.keys().cloned().collect();
                names.sort_unstable();
                names.into()
            };
            Arc::clone(self.known.get_or_insert_with(names))
        };
        Refusal::UnknownType { kind: job.kind.clone(), known }
    }
}

/// Why the caller may not make this job, as it would be.
pub(crate) fn out_of_reach(env: &Env<'_>, job: &EnqueueJob, reach: &Reach) -> Option<Refusal> {
    let none = TypeSettings::default();
    let settings = env.types.get(&job.kind).unwrap_or(&none);
    let home = (queue_of(job, settings), &*job.kind);
    reach.admits(home, priority(job, settings)).err().map(Refusal::OutOfReach)
}

/// Why a payload of this size may not be stored.
pub(crate) fn payload(settings: &TypeSettings, payload: &str) -> Option<Refusal> {
    let (bytes, max) = (payload.len(), settings.payload_max_bytes?);
    let fits = u32::try_from(bytes).is_ok_and(|bytes| bytes <= max);
    (!fits).then_some(Refusal::PayloadTooLarge { bytes, max })
}

fn forbidden(settings: &TypeSettings, job: &EnqueueJob) -> Option<Refusal> {
    let queue = queue_of(job, settings);
    if let Some(allowed) = &settings.queues
        && !allowed.iter().any(|name| name == queue)
    {
        let allowed = allowed.join(", ");
        let message = format!("is {queue}, but jobs of type {:?} may go to {allowed} only", job.kind);
        return Some(Refusal::Invalid { field: "queue", message });
    }
    let (asked, ceiling) = (job.priority?, settings.priority_ceiling?);
    (asked > ceiling).then(|| {
        let message = format!(
            "is {}, above {}, the most that type {:?} allows",
            asked.value(),
            ceiling.value(),
            job.kind
        );
        Refusal::Invalid { field: "priority", message }
    })
}

/// The priority of a job: what it asks for, else the default, which the ceiling lowers.
pub(crate) fn priority(job: &EnqueueJob, settings: &TypeSettings) -> Priority {
    job.priority.unwrap_or_else(|| {
        let default = settings.priority.unwrap_or_default();
        settings.priority_ceiling.map_or(default, |ceiling| default.min(ceiling))
    })
}
