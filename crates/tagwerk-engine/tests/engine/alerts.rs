//! Alerts: what a look finds, and what becomes of its judgement.

use tagwerk_core::ErrorClass;
use tagwerk_core::alert::{Kind, Moment, Reading, Rules, Scope, State, judge, measure};
use tagwerk_core::limits::{HOUR_MS, MINUTE_MS};
use tagwerk_engine::command::{AlertAnswer, AlertCall, Claim, EnqueueJob, Judgement, PutType, Start, Turn};
use tagwerk_engine::message::{By, Message};
use tagwerk_engine::row::{AlertQuery, AlertRow, TypeSettings, Ways, Which};
use tagwerk_engine::store::{Filter, Store};
use tagwerk_engine::watch::{Look, RunTimes, Watch};

use crate::rig::{Rig, claim, completed, failed, job};

const FIVE_MINUTES: u32 = 300_000;

/// Somebody who looks.
#[derive(Default)]
struct Eyes {
    watch: Watch,
    runs: RunTimes,
    rules: Rules,
}

impl Eyes {
    fn look(&mut self, rig: &Rig) -> Look {
        let readers = rig.disk.readers();
        let mut read = readers.snapshot().unwrap();
        let seen = (&rig.shared.vitals(), &self.runs);
        self.watch.look(&mut *read, seen, (&self.rules, rig.now())).unwrap()
    }

    /// How one thing stands.
    fn state(&mut self, rig: &Rig, kind: Kind, name: &str) -> State {
        let is = |reading: &Reading| reading.kind == kind && reading.scope.name() == name;
        let found = measure(&self.look(rig).figures, &self.rules).into_iter().find(is);
        found.map_or(State::Calm, |reading| reading.state)
    }

    /// Looks, and has written what follows: what opened, what closed.
    fn judge(&mut self, rig: &mut Rig) -> (Vec<AlertRow>, Vec<AlertRow>) {
        let look = self.look(rig);
        let open: Vec<_> = look.open.iter().map(AlertRow::open).collect();
        let moment = Moment { now: look.at, watched_since: look.since, calm_ms: self.rules.calm_ms };
        let changes = judge(&measure(&look.figures, &self.rules), &open, moment);
        let judgement = Judgement { changes, ways: Ways::COMMAND, marks: look.marks, ..Judgement::default() };
        judged(rig, judgement)
    }
}

fn call(rig: &mut Rig, call: AlertCall) -> AlertAnswer {
    rig.send(|reply| Message::Alert(call, By::local(), Box::new(reply))).try_recv().unwrap().unwrap()
}

fn judged(rig: &mut Rig, judgement: Judgement) -> (Vec<AlertRow>, Vec<AlertRow>) {
    match call(rig, AlertCall::Judge(judgement)) {
        AlertAnswer::Judged { opened, closed } => (opened, closed),
        other => panic!("{other:?}"),
    }
}

fn rows(rig: &Rig, which: Which) -> Vec<AlertRow> {
    let readers = rig.disk.readers();
    let mut read = readers.snapshot().unwrap();
    read.alerts(&AlertQuery { after: 0, which, limit: 100 }).unwrap()
}

fn in_queue(queue: &str) -> EnqueueJob {
    EnqueueJob { queue: Some(queue.to_owned()), ..job("t") }
}

fn of(queue: &str) -> Claim {
    let filter = Filter { queues: Some(vec![queue.to_owned()]), types: None, space: None };
    Claim { filter, ..claim("w") }
}

#[test]
fn what_is_open_does_not_open_again_and_is_told_once() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    let settings = TypeSettings { owner: Some("payments".to_owned()), ..TypeSettings::default() };
    let put = PutType { kind: "t".to_owned(), settings: Some(settings) };
    rig.send(|reply| Message::PutType(put, By::local(), Box::new(reply)))
        .try_recv()
        .unwrap()
        .unwrap()
        .unwrap();
    eyes.look(&rig);
    rig.create(in_queue("q"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let look = eyes.look(&rig);
    assert_eq!(look.marks, [("t".to_owned(), 1)]);
    let (opened, closed) = eyes.judge(&mut rig);
    assert_eq!((opened.len(), closed.len()), (1, 0));
    let alert = &opened[0];
    assert_eq!((alert.kind, &alert.scope), (Kind::ReviewNew, &Scope::Type("t".to_owned())));
    assert_eq!((alert.owner.as_deref(), alert.due_opened), (Some("payments"), Ways::COMMAND));
    // A judgement of the same figures that comes late.
    let changes = judge(
        &measure(&look.figures, &eyes.rules),
        &[],
        Moment { now: look.at, watched_since: look.since, calm_ms: 0 },
    );
    assert_eq!(changes.len(), 1);
    assert_eq!(judged(&mut rig, Judgement { changes, ..Judgement::default() }), (vec![], vec![]));
    assert_eq!(rows(&rig, Which::All).len(), 1);

    let told = AlertCall::Told { id: alert.id, turn: Turn::Opened, way: Ways::COMMAND };
    assert_eq!(rows(&rig, Which::Due).len(), 1);
    assert!(matches!(call(&mut rig, told.clone()), AlertAnswer::Alert { changed: true, .. }));
    assert!(matches!(call(&mut rig, told), AlertAnswer::Alert { changed: false, .. }));
    assert_eq!(rows(&rig, Which::Due), []);
    let nobody = AlertCall::Told { id: 77, turn: Turn::Opened, way: Ways::COMMAND };
    assert_eq!(call(&mut rig, nobody), AlertAnswer::NoSuchAlert);

    // The window passes, and the time for which it must be calm.
    for _ in 0..72 {
        rig.advance(10_000);
        assert_eq!(eyes.judge(&mut rig), (vec![], vec![]));
    }
    rig.advance(10_000);
    let (opened, closed) = eyes.judge(&mut rig);
    assert_eq!((opened.len(), closed.len()), (0, 1));
    assert_eq!((closed[0].id, closed[0].due_closed), (alert.id, Ways::COMMAND));
    assert_eq!(closed[0].closed_at, Some(rig.now()));
}

/// A server that was down for an hour: nobody could ask, so nobody is missed before they had the time to come.
#[test]
fn after_a_start_nobody_is_missed_before_they_had_time_to_come() {
    let mut rig = Rig::new();
    rig.create(in_queue("q"));
    let mut rig = rig.restart(3_600_000);
    let mut eyes = Eyes::default();
    assert_eq!(eyes.state(&rig, Kind::NoWorker, "q"), State::Unsure);
    rig.advance(FIVE_MINUTES - 1_000);
    assert_eq!(eyes.state(&rig, Kind::NoWorker, "q"), State::Unsure);
    rig.advance(1_000);
    assert_eq!(eyes.state(&rig, Kind::NoWorker, "q"), State::Rings);
    rig.claim(of("other"));
    assert_eq!(eyes.state(&rig, Kind::NoWorker, "q"), State::Rings);
    rig.claim(of("q"));
    assert_eq!(eyes.state(&rig, Kind::NoWorker, "q"), State::Calm);
}

/// What was open before a restart neither closes nor opens anew by it.
#[test]
fn an_open_alert_outlives_a_restart() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    rig.create(in_queue("q"));
    eyes.judge(&mut rig);
    rig.advance(FIVE_MINUTES);
    let opened = eyes.judge(&mut rig).0;
    assert_eq!(opened.iter().map(|row| row.kind).collect::<Vec<_>>(), [Kind::NoWorker]);
    let mut rig = rig.restart(1_000);
    let mut eyes = Eyes::default();
    for _ in 0..10 {
        assert_eq!(eyes.judge(&mut rig), (vec![], vec![]));
        rig.advance(60_000);
    }
    assert_eq!(rows(&rig, Which::Open).iter().map(|row| row.id).collect::<Vec<_>>()[0], opened[0].id);
}

/// A nightly job for which nobody is there is told when it becomes due, not when it is late.
#[test]
fn jobs_that_are_soon_due_are_missed_when_they_become_due() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    rig.create(EnqueueJob { start: Start::AfterMs(HOUR_MS), ..in_queue("q") });
    eyes.look(&rig);
    for _ in 0..59 {
        rig.advance(60_000);
        assert_ne!(eyes.state(&rig, Kind::NoWorker, "q"), State::Rings);
    }
    rig.advance(60_000);
    assert_eq!(eyes.state(&rig, Kind::NoWorker, "q"), State::Rings);
}

/// One worker for two queues asks for them in turn; it is there for both, whichever it asked for last.
#[test]
fn a_worker_that_asks_in_turn_is_there_for_all_that_it_asks_for() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    for _ in 0..400 {
        rig.create(in_queue("a"));
    }
    for _ in 0..390 {
        rig.advance(1_000);
        rig.claim(of("a"));
        rig.claim(of("b"));
        assert_eq!(eyes.state(&rig, Kind::NoWorker, "a"), State::Calm);
    }
    // From now on it asks for the other one only.
    for second in 0..300 {
        rig.advance(1_000);
        rig.claim(of("b"));
        let rings = eyes.state(&rig, Kind::NoWorker, "a") == State::Rings;
        assert_eq!(rings, second >= 299, "{second}");
    }
}

/// A claim that waits is somebody who is there.
#[test]
fn a_claim_that_waits_is_somebody() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    eyes.rules.general.set(Kind::NoWorker, Some(10_000));
    // It holds back a job that nobody may have.
    let later = EnqueueJob { start: Start::AfterMs(40_000), ..in_queue("q") };
    rig.create(later);
    let waiting = rig.park(Claim { wait_ms: 30_000, ..of("q") });
    for _ in 0..29 {
        rig.advance(1_000);
        assert_ne!(eyes.state(&rig, Kind::NoWorker, "q"), State::Rings);
    }
    rig.advance(2_000);
    assert!(waiting.try_recv().is_ok());
    for _ in 0..8 {
        rig.advance(1_000);
        assert_ne!(eyes.state(&rig, Kind::NoWorker, "q"), State::Rings);
    }
    // It was first seen that the job is soon due two seconds after the claim had ended.
    rig.advance(3_000);
    assert_eq!(eyes.state(&rig, Kind::NoWorker, "q"), State::Rings);
}

/// Nobody looked when it came into review: the next server tells it, once.
#[test]
fn what_came_into_review_unseen_is_new_at_the_next_start() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    eyes.judge(&mut rig);
    rig.create(in_queue("q"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    let mut rig = rig.restart(1_000);
    let mut eyes = Eyes::default();
    assert_eq!(eyes.judge(&mut rig).0.len(), 1);
    // It has been judged now.
    let mut rig = rig.restart(1_000);
    let mut eyes = Eyes::default();
    assert_eq!(eyes.state(&rig, Kind::ReviewNew, "t"), State::Unsure);
    assert_eq!(eyes.judge(&mut rig), (vec![], vec![]));
}

#[test]
fn a_job_that_is_in_review_for_long_rings_until_somebody_decides() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    let id = rig.create(in_queue("q"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    rig.clock.advance(86_399_000);
    rig.tick();
    assert_eq!(eyes.state(&rig, Kind::ReviewAge, "t"), State::Near);
    rig.advance(31_000);
    assert_eq!(eyes.state(&rig, Kind::ReviewAge, "t"), State::Rings);
    rig.operate(id, tagwerk_core::Action::Discard).unwrap();
    assert_eq!(eyes.state(&rig, Kind::ReviewAge, "t"), State::Calm);
}

#[test]
fn a_type_without_success_rings_while_there_is_more_to_do() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    eyes.look(&rig);
    rig.create(in_queue("q"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Transient)).unwrap();
    eyes.look(&rig);
    rig.clock.advance(3_600_000);
    rig.tick();
    assert_eq!(eyes.state(&rig, Kind::NoSuccess, "t"), State::Rings);
    let held = rig.take("w");
    rig.say(&held, completed()).unwrap();
    assert_eq!(eyes.state(&rig, Kind::NoSuccess, "t"), State::Calm);
    // The last one failed for good: nothing is to be done, so nothing is missed here.
    rig.create(in_queue("q"));
    let held = rig.take("w");
    rig.say(&held, failed(ErrorClass::Permanent)).unwrap();
    eyes.look(&rig);
    rig.clock.advance(3_600_000);
    rig.tick();
    assert_eq!(eyes.state(&rig, Kind::NoSuccess, "t"), State::Calm);
}

#[test]
fn run_times_are_those_of_the_window() {
    let (mut rig, mut eyes) = (Rig::new(), Eyes::default());
    rig.create(in_queue("q"));
    eyes.look(&rig);
    for _ in 0..20 {
        eyes.runs.note("t", 2 * HOUR_MS);
    }
    assert_eq!(eyes.state(&rig, Kind::RunTimeP95, "t"), State::Rings);
    for _ in 0..12 {
        rig.advance(60_000);
        eyes.look(&rig);
    }
    assert_eq!(eyes.state(&rig, Kind::RunTimeP95, "t"), State::Calm);
    for _ in 0..20 {
        eyes.runs.note("t", MINUTE_MS);
    }
    assert_eq!(eyes.state(&rig, Kind::RunTimeP95, "t"), State::Calm);
}
