//! Claims that are repeated under their `request_id`: they show leases that were granted before, with the same tokens.

use tagwerk_engine::command::ClaimAnswer;

use super::Model;
use super::step::{Seen, StepSeen, claim_answer};

impl Model {
    /// Whether the answer shows again what was granted before.
    pub(super) fn is_repeated(&self, answer: &ClaimAnswer) -> bool {
        answer.replayed && self.holds_all(answer)
    }

    /// Whether the leases of the answer are the ones that the jobs have.
    fn holds_all(&self, answer: &ClaimAnswer) -> bool {
        answer.jobs.iter().all(|claimed| {
            let row = &claimed.job.row.job;
            let held = self.jobs.get(&row.id.0).and_then(|job| job.lease.as_ref());
            held.map(|lease| lease.bits) == row.lease.as_ref().map(|lease| lease.bits.0)
        })
    }

    /// Tokens that a repeated claim was told in a transaction in which it could not be judged.
    pub(super) fn learn_tokens(&mut self, step: &StepSeen) {
        let items = step.items.iter().filter_map(|item| match item {
            Seen::Call { reply, .. } => claim_answer(reply.as_ref()),
            Seen::GiveBack(_) | Seen::Stop => None,
        });
        let parked = step.parked.iter().filter_map(|parked| claim_answer(parked.reply.as_ref()));
        for answer in items.chain(parked).filter(|answer| answer.replayed) {
            for claimed in &answer.jobs {
                let row = &claimed.job.row.job;
                let lease = self.jobs.get_mut(&row.id.0).and_then(|job| job.lease.as_mut());
                if let Some(lease) =
                    lease.filter(|lease| row.lease.as_ref().is_some_and(|own| own.bits.0 == lease.bits))
                {
                    lease.token.get_or_insert_with(|| claimed.token.clone());
                    self.tokens.insert(claimed.token.clone());
                }
            }
        }
    }
}
