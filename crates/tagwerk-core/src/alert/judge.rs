//! Readings against the alerts that are open.

use std::collections::BTreeMap;

use super::{Kind, Reading, Scope, State};
use crate::limits;
use crate::time::Timestamp;

/// An alert that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its number.
    pub id: i64,
    /// What.
    pub kind: Kind,
    /// Where.
    pub scope: Scope,
    /// When it last rang, as written.
    pub last_seen: Timestamp,
    /// Since when it has been calm, as written.
    pub calm_since: Option<Timestamp>,
}

/// When readings are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The present.
    pub now: Timestamp,
    /// Since when somebody has been looking without a break.
    pub watched_since: Timestamp,
    /// How long it must have been calm.
    pub calm_ms: i64,
}

/// What becomes of an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new one.
    Open(Reading),
    /// It still rings: the figures of now.
    Seen(i64, Reading),
    /// It is not calm any more, and does not ring either.
    Restless(i64),
    /// It has become calm.
    Calm(i64),
    /// It has been calm for long enough.
    Close(i64),
}

/// What opens, goes on and closes. Rows that would only be written again are left out.
#[must_use]
pub fn judge(readings: &[Reading], open: &[Open], moment: Moment) -> Vec<Change> {
    let mut by_thing: BTreeMap<(Kind, &Scope), &Open> =
        open.iter().map(|open| ((open.kind, &open.scope), open)).collect();
    let mut changes = Vec::new();
    for reading in readings {
        match (reading.state, by_thing.remove(&(reading.kind, &reading.scope))) {
            (State::Rings, None) => changes.push(Change::Open(reading.clone())),
            (State::Rings, Some(open)) => {
                let is_old = moment.now.since_ms(open.last_seen) >= limits::ALERT_SEEN_EVERY_MS;
                if is_old || open.calm_since.is_some() {
                    changes.push(Change::Seen(open.id, reading.clone()));
                }
            }
            (State::Near, Some(open)) if open.calm_since.is_some() => {
                changes.push(Change::Restless(open.id));
            }
            (State::Calm, Some(open)) => changes.extend(calm(open, moment)),
            (State::Near | State::Calm | State::Unsure, _) => {}
        }
    }
    // What is not looked at any more, because it is gone or switched off, is calm.
    changes.extend(by_thing.into_values().filter_map(|open| calm(open, moment)));
    changes
}

/// Time in which nobody looked does not count as calm.
fn calm(open: &Open, moment: Moment) -> Option<Change> {
    match open.calm_since {
        None if moment.calm_ms == 0 => Some(Change::Close(open.id)),
        None => Some(Change::Calm(open.id)),
        Some(since) => {
            let calm_ms = moment.now.since_ms(since.max(moment.watched_since));
            (calm_ms >= moment.calm_ms).then_some(Change::Close(open.id))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM_MS: i64 = 120_000;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn reading(state: State) -> Reading {
        Reading {
            kind: Kind::NoWorker,
            scope: Scope::Queue("q".to_owned()),
            state,
            value: 1,
            threshold: 1,
            detail: "d".to_owned(),
        }
    }

    fn open(calm_since: Option<Timestamp>) -> Open {
        Open {
            id: 7,
            kind: Kind::NoWorker,
            scope: Scope::Queue("q".to_owned()),
            last_seen: at(1_000),
            calm_since,
        }
    }

    fn moment(now: i64) -> Moment {
        Moment { now: at(now), watched_since: at(0), calm_ms: CALM_MS }
    }

    /// Every state of a figure against no alert, one that rings, and one that is calm.
    #[test]
    fn every_state_against_every_alert() {
        let now = moment(2_000);
        for (state, unknown, ringing, calm) in [
            (
                State::Rings,
                vec![Change::Open(reading(State::Rings))],
                vec![],
                vec![Change::Seen(7, reading(State::Rings))],
            ),
            (State::Near, vec![], vec![], vec![Change::Restless(7)]),
            (State::Calm, vec![], vec![Change::Calm(7)], vec![]),
            (State::Unsure, vec![], vec![], vec![]),
        ] {
            assert_eq!(judge(&[reading(state)], &[], now), unknown, "{state:?} without an alert");
            assert_eq!(judge(&[reading(state)], &[open(None)], now), ringing, "{state:?} while it rings");
            assert_eq!(
                judge(&[reading(state)], &[open(Some(at(1_500)))], now),
                calm,
                "{state:?} while it is calm"
            );
        }
    }

    #[test]
    fn an_alert_closes_when_it_has_been_calm_for_long_enough() {
        let alert = open(Some(at(1_000)));
        let calm = [reading(State::Calm)];
        let just = 1_000 + CALM_MS;
        assert_eq!(judge(&calm, std::slice::from_ref(&alert), moment(just - 1)), []);
        assert_eq!(judge(&calm, std::slice::from_ref(&alert), moment(just)), [Change::Close(7)]);
        // Nobody looked in the meantime.
        let away = Moment { watched_since: at(just - 10), ..moment(just) };
        assert_eq!(judge(&calm, std::slice::from_ref(&alert), away), []);
        // What is gone or switched off is calm too.
        assert_eq!(judge(&[], &[alert], moment(just)), [Change::Close(7)]);
        assert_eq!(judge(&[], &[open(None)], moment(just)), [Change::Calm(7)]);
        let at_once = Moment { calm_ms: 0, ..moment(just) };
        assert_eq!(judge(&calm, &[open(None)], at_once), [Change::Close(7)]);
    }

    #[test]
    fn a_row_that_goes_on_is_written_now_and_then() {
        let rings = [reading(State::Rings)];
        let due = 1_000 + limits::ALERT_SEEN_EVERY_MS;
        assert_eq!(judge(&rings, &[open(None)], moment(due - 1)), []);
        assert_eq!(judge(&rings, &[open(None)], moment(due)), [Change::Seen(7, reading(State::Rings))]);
    }

    /// A figure that swings around its threshold for an hour: one alert, and it closes once.
    #[test]
    fn a_figure_that_swings_makes_one_alert() {
        let mut alert: Option<Open> = None;
        let (mut opened, mut closed) = (0, 0);
        for second in 0..7_200 {
            let swings = second < 3_600;
            let state = match second % 3 {
                0 if swings => State::Rings,
                1 if swings => State::Near,
                _ => State::Calm,
            };
            let now = at(second * 1_000);
            let moment = Moment { now, watched_since: at(0), calm_ms: CALM_MS };
            for change in judge(&[reading(state)], alert.as_slice(), moment) {
                match change {
                    Change::Open(_) => {
                        opened += 1;
                        alert = Some(Open { last_seen: now, ..open(None) });
                    }
                    Change::Close(_) => {
                        closed += 1;
                        alert = None;
                    }
                    Change::Calm(_) => alert = Some(open(Some(now))),
                    Change::Restless(_) => alert = Some(open(None)),
                    Change::Seen(..) => {
                        alert = Some(Open { last_seen: now, ..open(None) });
                    }
                }
            }
        }
        assert_eq!((opened, closed), (1, 1));
    }
}
