//! That the model finds what it is there for: each test plants one fault in a story that is sound otherwise.

use super::*;

const LEASE_MS: i64 = 1_000;

fn run(worker: &str) -> Run {
    Run { worker: worker.to_owned(), since: format!("then-{worker}") }
}

/// The job at a version.
fn seen(version: i64, status: &str) -> Seen {
    Seen {
        id: 1,
        version,
        status: status.to_owned(),
        counters: [0, 0, 0, 0],
        verify: false,
        run: None,
        lease_until_ms: None,
        mark: "m".to_owned(),
        key: None,
    }
}

fn held(version: i64, worker: &str) -> Seen {
    Seen { run: Some(run(worker)), lease_until_ms: Some(LEASE_MS), ..seen(version, "running") }
}

/// Calls one after the other, each answered before the next.
struct Story(Vec<Entry>);

impl Story {
    fn new() -> Self {
        let mark = "m".to_owned();
        Self(Vec::new()).then(Asked::Enqueue { mark, key: None, group: None }, Heard::Job(seen(1, "pending")))
    }

    fn then(mut self, asked: Asked, heard: Heard) -> Self {
        let began = Moment::try_from(self.0.len()).expect("a length") * 2;
        let at_ms = i64::try_from(began).expect("a time");
        self.0.push(Entry { client: 0, began, ended: began + 1, at_ms, asked, heard });
        self
    }

    fn claimed(self, version: i64, worker: &str) -> Self {
        self.then(Asked::Claim { worker: worker.to_owned() }, Heard::Job(held(version, worker)))
    }

    fn said(self, worker: &str, said: Said, heard: Heard) -> Self {
        self.then(Asked::Report { id: 1, run: run(worker), said }, heard)
    }

    fn completed(self, version: i64, worker: &str) -> Self {
        self.said(worker, Said::Completed(worker.to_owned()), Heard::Job(seen(version, "completed")))
    }

    fn check(&self, stored: Option<&Stored>) -> Vec<String> {
        check_job(&self.0.iter().collect::<Vec<_>>(), stored, Silence::MeansEither)
    }
}

fn attempt(seq: i64, worker: &str, outcome: Option<&str>) -> Attempt {
    Attempt {
        seq,
        run: run(worker),
        ended_ms: outcome.map(|_| 500),
        outcome: outcome.map(str::to_owned),
        class: None,
    }
}

fn stored(seen: Seen, attempts: &[Attempt]) -> Stored {
    let result = (seen.status == "completed").then(|| attempts.last().map(|last| last.run.worker.clone()));
    let attempts = attempts.to_vec();
    Stored { seen, result: result.flatten(), checkpoint: None, attempts, actions: Vec::new() }
}

fn done(version: i64, worker: &str) -> Stored {
    stored(seen(version, "completed"), &[attempt(1, worker, Some("completed"))])
}

/// What is found contains this and nothing else.
#[track_caller]
fn finds(found: &[String], words: &str) {
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains(words), "{found:#?}");
}

#[test]
fn a_sound_story_is_sound() {
    let story = Story::new().claimed(2, "a").completed(3, "a");
    assert_eq!(story.check(Some(&done(3, "a"))), Vec::<String>::new());
    // With the answer lost, both ends are sound.
    let lost = Story::new().claimed(2, "a").said("a", Said::Completed("a".to_owned()), Heard::Nothing);
    assert_eq!(lost.check(Some(&done(3, "a"))), Vec::<String>::new());
    let running = stored(held(2, "a"), &[attempt(1, "a", None)]);
    assert_eq!(lost.check(Some(&running)), Vec::<String>::new());
}

#[test]
fn a_lost_enqueue_is_found() {
    finds(&Story::new().check(None), "an accepted job is lost");
    let deleted = Story::new().then(Asked::Delete { id: 1 }, Heard::Nothing);
    assert_eq!(deleted.check(None), Vec::<String>::new());
    let deleted = Story::new().then(Asked::Delete { id: 1 }, Heard::Done { lease_until_ms: None });
    finds(&deleted.check(Some(&stored(seen(1, "pending"), &[]))), "was deleted and is there");
    let asked = Asked::Enqueue { mark: "n".to_owned(), key: Some("k".to_owned()), group: None };
    let tombstone = Story(Vec::new()).then(asked, Heard::Again(seen(0, "cancelled")));
    assert_eq!(tombstone.check(None), Vec::<String>::new());
    let found = tombstone.check(Some(&stored(seen(1, "cancelled"), &[])));
    assert!(found.contains(&"it was deleted and is there".to_owned()), "{found:#?}");
}

#[test]
fn a_lost_completion_is_found() {
    let story = Story::new().claimed(2, "a").completed(3, "a");
    let found = story.check(Some(&stored(held(2, "a"), &[attempt(1, "a", None)])));
    assert!(found.iter().any(|what| what.contains("went back from version 3")), "{found:#?}");
    assert!(found.iter().any(|what| what.contains("was accepted and is lost")), "{found:#?}");
    // Also where another change has taken the version since.
    let other = stored(seen(3, "pending"), &[attempt(1, "a", Some("lease_expired"))]);
    let found = story.check(Some(&other));
    assert!(found.iter().any(|what| what.contains("version 3 means two things")), "{found:#?}");
}

#[test]
fn a_lost_claim_is_found() {
    let story = Story::new().claimed(2, "a");
    let found = story.check(Some(&stored(seen(1, "pending"), &[])));
    assert!(found.iter().any(|what| what.contains("is in its history 0 times")), "{found:#?}");
}

#[test]
fn a_double_completion_is_found() {
    let story = Story::new().claimed(2, "a").completed(3, "a").completed(3, "a");
    finds(&story.check(Some(&done(3, "a"))), "two reports with one lease counted");
    // By two workers: the history shows it even if nobody heard of it.
    let twice = stored(
        seen(5, "completed"),
        &[attempt(1, "a", Some("completed")), attempt(2, "b", Some("completed"))],
    );
    let story = Story::new().claimed(2, "a").completed(3, "a").claimed(4, "b").completed(5, "b");
    let found = story.check(Some(&twice));
    assert!(found.iter().any(|what| what.contains("with 2 completed attempts")), "{found:#?}");
    assert!(found.iter().any(|what| what.contains("went on to version 5")), "{found:#?}");
}

#[test]
fn a_completed_job_that_is_handed_out_again_is_found() {
    let again = stored(held(4, "b"), &[attempt(1, "a", Some("completed")), attempt(2, "b", None)]);
    let found = Story::new().claimed(2, "a").completed(3, "a").claimed(4, "b").check(Some(&again));
    assert!(found.iter().any(|what| what.contains("completed at version 3 and went on")), "{found:#?}");
}

#[test]
fn an_end_that_nobody_asked_for_is_found() {
    let story = Story::new().claimed(2, "a");
    finds(&story.check(Some(&done(3, "a"))), "nobody asked for this end");
    let result = Story::new().claimed(2, "a").said("a", Said::Completed("other".to_owned()), Heard::Nothing);
    finds(&result.check(Some(&done(3, "a"))), "nobody asked for this end");
    let claimed = Story::new().check(Some(&stored(held(2, "x"), &[attempt(1, "x", None)])));
    finds(&claimed, "nobody claimed it");
}

#[test]
fn after_an_orderly_stop_silence_means_that_nothing_happened() {
    let story = Story::new().claimed(2, "a").said("a", Said::Completed("a".to_owned()), Heard::Nothing);
    let entries: Vec<&Entry> = story.0.iter().collect();
    let done = done(3, "a");
    assert!(check_job(&entries, Some(&done), Silence::MeansEither).is_empty());
    finds(&check_job(&entries, Some(&done), Silence::MeansNo), "nobody asked for this end");
}

#[test]
fn a_lease_that_is_taken_while_alive_is_found() {
    let lost = Attempt { ended_ms: Some(LEASE_MS - 1), ..attempt(1, "a", Some("lease_expired")) };
    let story = Story::new().claimed(2, "a");
    let pending = stored(seen(3, "pending"), &[lost]);
    finds(&story.check(Some(&pending)), "and lost before");
    let on_time = Attempt { ended_ms: Some(LEASE_MS), ..attempt(1, "a", Some("lease_expired")) };
    assert_eq!(
        story.check(Some(&stored(seen(3, "pending"), std::slice::from_ref(&on_time)))),
        Vec::<String>::new()
    );
    // A heartbeat moves the end.
    let beaten = Story::new().claimed(2, "a").said(
        "a",
        Said::Heartbeat,
        Heard::Done { lease_until_ms: Some(2 * LEASE_MS) },
    );
    finds(&beaten.check(Some(&stored(seen(3, "pending"), &[on_time]))), "and lost before");
}

#[test]
fn a_holder_who_is_turned_away_is_found() {
    let refused = || Heard::Refused { status: 409, code: "lease-lost".to_owned() };
    let said = || Said::Completed("a".to_owned());
    let running = stored(held(2, "a"), &[attempt(1, "a", None)]);
    let story = Story::new().claimed(2, "a").said("a", said(), refused());
    finds(&story.check(Some(&running)), "while its lease was alive");
    let cancelled = Story::new()
        .claimed(2, "a")
        .then(Asked::Operate { id: 1, action: "cancel" }, Heard::Nothing)
        .said("a", said(), refused());
    assert_eq!(cancelled.check(Some(&running)), Vec::<String>::new());
    let mut late = Story::new().claimed(2, "a").said("a", said(), refused());
    late.0[2].at_ms = LEASE_MS;
    assert_eq!(late.check(Some(&running)), Vec::<String>::new());
}

#[test]
fn a_lost_checkpoint_is_found() {
    let saved = |story: Story, value: &str, heard: Heard| {
        story.then(Asked::Checkpoint { id: 1, run: run("a"), value: value.to_owned() }, heard)
    };
    let done = || Heard::Done { lease_until_ms: None };
    let story = saved(saved(Story::new().claimed(2, "a"), "one", done()), "two", Heard::Nothing);
    let with = |checkpoint: Option<&str>| {
        let running = stored(held(2, "a"), &[attempt(1, "a", None)]);
        Stored { checkpoint: checkpoint.map(str::to_owned), ..running }
    };
    assert_eq!(story.check(Some(&with(Some("one")))), Vec::<String>::new());
    assert_eq!(story.check(Some(&with(Some("two")))), Vec::<String>::new());
    finds(&story.check(Some(&with(None))), "its checkpoint is None");
    let later = saved(story, "three", done());
    finds(&later.check(Some(&with(Some("two")))), "its checkpoint is Some(\"two\")");
    // Unless what was silent may be done later than what came behind it.
    let entries: Vec<&Entry> = later.0.iter().collect();
    let check = |value| check_job(&entries, Some(&with(Some(value))), Silence::MayComeLate);
    assert_eq!((check("two"), check("three")), (Vec::new(), Vec::new()));
    finds(&check("one"), "its checkpoint is Some(\"one\")");
}

#[test]
fn a_lost_retry_is_found() {
    let failed = |version| Seen { id: 1, ..seen(version, "failed") };
    let story = Story::new()
        .claimed(2, "a")
        .said("a", Said::Failed("permanent"), Heard::Job(failed(3)))
        .then(Asked::Operate { id: 1, action: "retry" }, Heard::Job(seen(4, "pending")));
    let attempt = Attempt { class: Some("permanent".to_owned()), ..attempt(1, "a", Some("failed")) };
    let mut kept = stored(seen(4, "pending"), &[attempt]);
    finds(&story.check(Some(&kept)), "retry was accepted as version 4 and is not in its history");
    kept.actions.push(("retry".to_owned(), 4));
    assert_eq!(story.check(Some(&kept)), Vec::<String>::new());
}

#[test]
fn what_had_ended_stays_as_it_was() {
    let before = seen(3, "completed");
    let none: [&Entry; 0] = [];
    let check = |now: Option<&Seen>| check_settled(&none, (&before, now), Silence::MeansEither);
    assert_eq!(check(Some(&before)), Vec::<String>::new());
    finds(&check(None), "is lost");
    finds(&check(Some(&seen(4, "pending"))), "it had ended as");
    let late = Story::new().completed(3, "a");
    let found = check_settled(&[&late.0[1]], (&before, Some(&before)), Silence::MeansEither);
    finds(&found, "was over and this counted");
}

/// An enqueue and what became of it.
fn enqueue(mark: &str, key: Option<&str>, heard: Heard) -> Entry {
    let asked = Asked::Enqueue { mark: mark.to_owned(), key: key.map(str::to_owned), group: None };
    Entry { client: 0, began: 0, ended: 1, at_ms: 0, asked, heard }
}

fn marked(id: i64, mark: &str, key: Option<&str>) -> Seen {
    Seen { id, mark: mark.to_owned(), key: key.map(str::to_owned), ..seen(1, "pending") }
}

fn register(entries: &[Entry], found: &[Seen], silence: Silence) -> Vec<String> {
    let mut register = Register::default();
    for entry in entries {
        register.note(entry);
    }
    for seen in found {
        register.found(seen);
    }
    register.check(silence).into_iter().map(|violation| violation.what).collect()
}

#[test]
fn a_job_that_was_made_twice_is_found() {
    let silent = [enqueue("m", None, Heard::Nothing)];
    let (one, two) = (marked(1, "m", None), marked(2, "m", None));
    assert!(register(&silent, std::slice::from_ref(&one), Silence::MeansEither).is_empty());
    finds(&register(&silent, std::slice::from_ref(&one), Silence::MeansNo), "carry the mark m");
    finds(&register(&silent, &[one.clone(), two], Silence::MeansEither), "carry the mark m");
    let refused = [enqueue("m", None, Heard::Refused { status: 503, code: "draining".to_owned() })];
    finds(&register(&refused, &[one], Silence::MeansEither), "carry the mark m");
}

#[test]
fn a_key_that_stands_for_two_jobs_is_found() {
    let first = enqueue("m", Some("k"), Heard::Job(marked(1, "m", Some("k"))));
    let again = enqueue("n", Some("k"), Heard::Again(marked(1, "m", Some("k"))));
    let other = enqueue("o", Some("k"), Heard::Job(marked(2, "o", Some("k"))));
    assert!(register(&[first.clone(), again], &[], Silence::MeansEither).is_empty());
    finds(&register(&[first, other], &[], Silence::MeansEither), "key k stands for the jobs [1, 2]");
}

#[test]
fn half_a_group_is_found() {
    let of_group = |mark: &str| {
        let mut entry = enqueue(mark, None, Heard::Nothing);
        entry.asked = Asked::Enqueue { mark: mark.to_owned(), key: None, group: Some(7) };
        entry
    };
    let group = [of_group("m"), of_group("n")];
    let both = [marked(1, "m", None), marked(2, "n", None)];
    assert!(register(&group, &[], Silence::MeansEither).is_empty());
    assert!(register(&group, &both, Silence::MeansEither).is_empty());
    finds(&register(&group, &both[..1], Silence::MeansEither), "1 of 2 jobs were taken");
}
