//! Jobs that a completed one leads to: all or none, as if it were completed already. Section 5 of the semantics.

use tagwerk_core::JobId;
use tagwerk_engine::command::{Enqueue, FollowedUp, Refusal, WorkerAnswer};

use super::enqueue::{Source, Want};
use super::eye::Eye;
use super::{Contradiction, Judged, Model};
use crate::call::refusal_code;

/// Why nothing of a report with follow-ups is done: the place of the first that is refused, and its code.
pub(super) type Refused = (usize, &'static str);

impl Model {
    /// Creates what a completed job leads to, or says why not; then only time may have done something to jobs with the same keys.
    pub(super) fn lead_on(
        &mut self,
        request: &Enqueue,
        eye: &Eye<'_>,
    ) -> Result<Result<Vec<FollowedUp>, Refused>, Contradiction> {
        let wants = self.wants((request, Source::Completed), None, eye);
        let refused = wants.iter().enumerate().find_map(|(index, want)| match want {
            Want::Refused(code, _) => Some((index, *code)),
            _ => None,
        });
        if let Some(refused) = refused {
            return Ok(Err(refused));
        }
        let ids = self.create_all(request, &wants, eye)?;
        let known = |id: i64| FollowedUp { id: JobId(id), created: false };
        let mut led_to = Vec::new();
        for (index, (job, want)) in request.jobs.iter().zip(&wants).enumerate() {
            led_to.push(match want {
                Want::Pruned { owner, .. } => known(*owner),
                Want::Existing { owner, differs } => {
                    self.meet(*owner, (job, *differs));
                    known(*owner)
                }
                Want::Repeats { index, differs } => {
                    let owner = ids[*index].unwrap_or_default();
                    self.meet(owner, (job, *differs));
                    known(owner)
                }
                Want::Create | Want::Refused(..) => {
                    FollowedUp { id: JobId(ids[index].unwrap_or_default()), created: true }
                }
            });
        }
        Ok(Ok(led_to))
    }
}

/// The answer to a report must be this refusal.
pub(super) fn compare_refused(
    id: i64,
    (index, code): Refused,
    answer: Option<&Result<WorkerAnswer, Refusal>>,
) -> Judged {
    match answer {
        None => Ok(()),
        Some(Err(Refusal::FollowUp { index: at, refusal }))
            if *at == index && refusal_code(refusal) == code =>
        {
            Ok(())
        }
        Some(Err(other)) => Err(Contradiction::of(
            Some(id),
            format!("its follow-up {index} must be refused ({code}), the report was refused so: {other}"),
        )),
        Some(Ok(_)) => Err(Contradiction::of(
            Some(id),
            format!("its follow-up {index} must be refused ({code}), the report was accepted"),
        )),
    }
}
