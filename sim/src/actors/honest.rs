//! Claims, works, sends heartbeats, reports with its token, and says again what was not answered.

use tagwerk_core::{ErrorClass, Outcome, Rejection};
use tagwerk_engine::command::{Refusal, Said};

use super::hands::{Ask, Hands, contact, next_beat, outcome};
use super::{Actor, Desk, effects};
use crate::call::{Answer, Call, Reply, is_report};

/// See the module.
pub(super) struct Honest {
    hands: Hands,
}

/// How often it says something before it gives up.
const TRIES: u32 = 6;

impl Honest {
    pub(super) fn new(name: String) -> Self {
        // Every other one does.
        let knows_doubt = name.ends_with(['2', '4']);
        let mut hands = Hands::new(name);
        hands.knows_doubt = knows_doubt;
        Self { hands }
    }
}

impl Actor for Honest {
    fn wake(&mut self, desk: &mut Desk<'_>) {
        for index in 0..self.hands.held.len() {
            let held = &self.hands.held[index];
            if held.said.is_some() {
                continue;
            }
            let is_over = held.done_at <= desk.mono;
            if (is_over || held.beat_at <= desk.mono)
                && let Some(said) = effects::next(desk, &mut self.hands.held[index])
            {
                self.hands.tell(desk, index, said);
            } else if is_over {
                let said = outcome(desk);
                self.hands.tell(desk, index, said);
            } else if self.hands.held[index].beat_at <= desk.mono {
                let said = contact(desk);
                self.hands.tell(desk, index, said);
            }
        }
        if self.hands.held.len() < 2 && !self.hands.asked {
            let wait_ms = if desk.chance.percent(40) { desk.chance.between(100, 6_000) } else { 0 };
            let max_jobs = 1 + desk.chance.below(2);
            self.hands.claim(desk, Ask { max_jobs, wait_ms });
        }
        desk.wake_within(100, 900);
    }

    fn heard(&mut self, desk: &mut Desk<'_>, call: &Call, reply: Option<&Reply>) {
        if self.hands.heard_claim(desk, call, reply) {
            desk.wake_within(0, 300);
        }
        let Some(place) = self.hands.place(call) else { return };
        let held = &mut self.hands.held[place];
        let Some(said) = held.said.clone() else { return };
        let is_report = is_report(&said);
        match reply {
            Some(Ok(Answer::Work(work))) => match work.results.first() {
                Some(Ok(answer)) if !is_report => {
                    if matches!(said, Said::Heartbeat { .. }) {
                        let end = held.said_at + held.lease_ms;
                        held.ends_at = held.ends_at.max(held.limit_at.map_or(end, |limit| limit.min(end)));
                    }
                    effects::heard(desk, (held, &answer.job.row.job), &said);
                    held.said = None;
                    held.tries = 0;
                    held.beat_at = desk.mono + next_beat(desk, held.lease_ms);
                    desk.wake_within(0, 200);
                }
                Some(Err(Refusal::Rejected {
                    rejection:
                        Rejection::LeaseLost { may_report: true } | Rejection::TimedOut { may_report: true },
                    ..
                })) => {
                    // Finish and report, begin nothing.
                    held.said = None;
                    held.done_at = desk.mono + desk.chance.between(0, 2_000);
                    held.beat_at = i64::MAX;
                }
                Some(Err(Refusal::Rejected { rejection: Rejection::EffectsOpen { .. }, .. }))
                    if desk.chance.percent(50) =>
                {
                    // Not all is well: nobody knows.
                    let (class, error) = (ErrorClass::Unknown, Some("an effect is open".to_owned()));
                    let outcome = Outcome::Failed { class, error, retry_after_ms: None };
                    held.said = None;
                    self.hands.tell(desk, place, Said::Report { outcome, result: None });
                }
                _ => {
                    self.hands.held.remove(place);
                }
            },
            _ if held.tries < TRIES => self.hands.tell(desk, place, said),
            _ => {
                self.hands.held.remove(place);
            }
        }
    }
}
