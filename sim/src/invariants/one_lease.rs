//! One holder at a time. Promise 2: a claim makes a lease, and no second one while the first is valid.

use std::collections::BTreeMap;

use tagwerk_core::{JobId, LeaseBits, Status};

use super::{At, Broken, Event, Invariant};
use crate::call::{Answer, Reply};
use crate::witness::Write;

/// See the module.
#[derive(Default)]
pub(super) struct OneLease {
    /// Which token belongs to which lease.
    tokens: BTreeMap<String, (JobId, u64)>,
}

impl OneLease {
    fn granted(&mut self, reply: &Reply) -> Result<(), Broken> {
        let claimed = match reply {
            Ok(Answer::Claim(answer)) => answer,
            Ok(Answer::Work(work)) => match &work.claimed {
                Some(answer) => answer,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        for job in &claimed.jobs {
            let id = job.job.row.job.id;
            let bits = job.job.row.job.lease.as_ref().map_or(0, |lease| lease.bits.0);
            if *self.tokens.entry(job.token.clone()).or_insert((id, bits)) != (id, bits) {
                return Err((Some(id), "one token was given for two leases".to_owned()));
            }
        }
        Ok(())
    }
}

impl Invariant for OneLease {
    fn name(&self) -> &'static str {
        "one valid lease at a time"
    }

    fn see(&mut self, at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Answered { reply, .. } => self.granted(reply),
            Event::Wrote(Write::Change(change)) => {
                let (before, after) = (&change.before.job, &change.after.job);
                let bits = |job: &tagwerk_core::Job| job.lease.as_ref().map(|lease| lease.bits);
                let (old, new): (Option<LeaseBits>, Option<LeaseBits>) = (bits(before), bits(after));
                let valid = before.lease.as_ref().is_some_and(|lease| lease.ends_at().as_millis() > at.now);
                if valid && new.is_some() && old != new {
                    return Err((Some(after.id), "it was handed out while its lease was valid".to_owned()));
                }
                if (after.status == Status::Running) != new.is_some() {
                    return Err((
                        Some(after.id),
                        "it has a lease exactly while it runs, but it does not".to_owned(),
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
