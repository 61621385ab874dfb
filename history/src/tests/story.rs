//! Histories written by hand. Times are milliseconds; a call lasts from its moment to ten later.

use crate::partition::unseen;
use crate::{
    Action, Asked, Attempt, By, Call, Class, Contradiction, History, Key, Report, Rules, Said, Scope, Status,
    Told, View, Whole, check,
};

/// A history that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) history: History,
}

/// Job 1, pending, never touched.
pub(crate) fn fresh() -> View {
    unseen(1)
}

/// The job is held, since this moment for so long.
pub(crate) fn held(view: View, (version, attempt): (i64, u32), worker: &str, (at, ms): (i64, i64)) -> View {
    View {
        status: Status::Running,
        version,
        attempt,
        worker: Some(worker.to_owned()),
        claimed_ms: Some(at),
        until_ms: Some(at + ms),
        ..view
    }
}

/// The job is not held (any more).
pub(crate) fn idle(view: View, version: i64, status: Status) -> View {
    View { version, status, worker: None, claimed_ms: None, until_ms: None, ..view }
}

impl Story {
    /// A call between these moments.
    pub(crate) fn call(mut self, (start, end): (u64, u64), asked: Asked, told: Told) -> Self {
        let client = u32::try_from(self.history.calls.len() % 7).expect("small");
        let (start_ns, end_ns) = (start * 1_000_000, end * 1_000_000);
        self.history.calls.push(Call { client, start_ns, end_ns, asked, told });
        self
    }

    /// A call from this moment on.
    pub(crate) fn at(self, start: u64, asked: Asked, told: Told) -> Self {
        self.call((start, start + 10), asked, told)
    }

    pub(crate) fn enqueued(self, start: u64, view: View) -> Self {
        let key = view.key.clone().map(|name| Key { name, scope: Scope::Ttl, ttl_ms: 3_600_000 });
        self.at(start, Asked::Enqueue { mark: None, key }, Told::Job(view))
    }

    pub(crate) fn claimed(self, start: u64, view: View) -> Self {
        let worker = view.worker.clone().expect("a holder");
        let lease_ms = view.until_ms.zip(view.claimed_ms).map(|(until, from)| until - from);
        let told = Told::Lease { view, lease: format!("L-{worker}"), again: false };
        self.at(start, Asked::Claim { worker, request: None, lease_ms }, told)
    }

    pub(crate) fn said(self, start: u64, (worker, said): (&str, Said), told: Told) -> Self {
        self.at(start, Asked::Report { job: 1, by: by(worker), said }, told)
    }

    pub(crate) fn completed(self, start: u64, worker: &str, view: View) -> Self {
        self.said(start, (worker, done()), Told::Job(view))
    }

    pub(crate) fn beat(self, start: u64, worker: &str, told: Told) -> Self {
        self.at(start, Asked::Heartbeat { job: 1, by: by(worker) }, told)
    }

    pub(crate) fn seen(self, start: u64, view: View) -> Self {
        self.at(start, Asked::Get { job: view.id }, Told::Job(view))
    }

    pub(crate) fn missing(self, start: u64, job: i64) -> Self {
        self.at(start, Asked::Get { job }, refused(404, "job-not-found"))
    }

    pub(crate) fn operated(self, start: u64, action: Action, told: Told) -> Self {
        self.at(start, Asked::Operate { job: 1, action, seen_version: None }, told)
    }

    pub(crate) fn check(&self) -> Report {
        check(&self.history)
    }

    /// It can be true.
    #[track_caller]
    pub(crate) fn holds(&self) {
        let report = self.check();
        let told: Vec<String> = report.contradictions.iter().map(ToString::to_string).collect();
        assert!(report.is_explained(), "{}\n{:?}", told.join("\n"), report.undecided);
    }

    /// It cannot; the smallest contradiction are the calls that begin at these moments.
    #[track_caller]
    pub(crate) fn contradicts(&self, moments: &[u64]) -> Contradiction {
        let mut report = self.check();
        assert_eq!(report.undecided, Vec::<String>::new());
        assert_eq!(report.contradictions.len(), 1, "{:?}", report.contradictions);
        let found = report.contradictions.remove(0);
        let starts: Vec<u64> = found.calls.iter().map(|call| call.start_ns / 1_000_000).collect();
        assert_eq!(starts, moments, "{found}");
        found
    }
}

pub(crate) fn by(worker: &str) -> By {
    By { lease: Some(format!("L-{worker}")), worker: None }
}

pub(crate) fn done() -> Said {
    Said::Completed { result: None }
}

pub(crate) fn refused(status: u16, code: &str) -> Told {
    Told::Refused { status, code: code.to_owned(), may_report: None }
}

/// Job 1 was accepted at 0, held by `a` from 100 on.
fn begun(lease_ms: i64) -> Story {
    Story::default().enqueued(0, fresh()).claimed(100, held(fresh(), (2, 1), "a", (105, lease_ms)))
}

/// The lease of `a` was lost; `b` holds the job from 2000 on.
fn taken_over() -> Story {
    let lost = View { retry_count: 1, lease_losses: 1, verify: true, ..fresh() };
    begun(1000).claimed(2000, held(lost, (4, 2), "b", (2005, 60_000)))
}

fn lost(view: View) -> View {
    View { attempt: 2, retry_count: 1, lease_losses: 1, verify: false, ..view }
}

#[test]
fn an_ordinary_life_is_explained() {
    begun(60_000)
        .beat(200, "a", Told::Done { until_ms: Some(60_205) })
        .seen(250, held(fresh(), (2, 1), "a", (105, 60_100)))
        .completed(300, "a", View { attempt: 1, ..idle(fresh(), 3, Status::Completed) })
        .said(400, ("a", done()), Told::Again(View { attempt: 1, ..idle(fresh(), 3, Status::Completed) }))
        .seen(500, View { attempt: 1, ..idle(fresh(), 3, Status::Completed) })
        .holds();
}

#[test]
fn a_lost_lease_and_a_late_report_are_explained() {
    taken_over().completed(2100, "b", lost(idle(fresh(), 5, Status::Completed))).holds();
    // The late report takes the place of the loss.
    begun(1000).completed(2000, "a", View { attempt: 1, ..idle(fresh(), 4, Status::Completed) }).holds();
    taken_over().said(2050, ("a", done()), refused(409, "lease-lost")).holds();
}

#[test]
fn calls_at_the_same_time_may_have_gone_either_way() {
    // The claim was answered after the enqueue's caller had given up waiting, and the reader saw the state before it.
    Story::default()
        .call((0, 500), Asked::Enqueue { mark: None, key: None }, Told::Job(fresh()))
        .call(
            (10, 400),
            Asked::Claim { worker: "a".to_owned(), request: None, lease_ms: Some(60_000) },
            Told::Lease {
                view: held(fresh(), (2, 1), "a", (50, 60_000)),
                lease: "L-a".to_owned(),
                again: false,
            },
        )
        .call((20, 450), Asked::Get { job: 1 }, Told::Job(fresh()))
        .holds();
}

#[test]
fn two_completions_with_two_leases_are_refused() {
    let story = taken_over()
        .seen(2050, held(lost(View { verify: true, ..fresh() }), (4, 2), "b", (2005, 60_000)))
        .completed(2100, "b", lost(idle(fresh(), 5, Status::Completed)))
        .seen(2150, lost(idle(fresh(), 5, Status::Completed)))
        .completed(2200, "a", lost(idle(fresh(), 6, Status::Completed)));
    let found = story.contradicts(&[2100, 2200]);
    assert!(found.text.contains("complete job 1 with the lease L-b"), "{found}");
    assert!(found.text.contains("by the rules"), "{found}");
}

#[test]
fn an_acknowledged_enqueue_that_is_lost_is_refused() {
    let found =
        Story::default().enqueued(0, fresh()).seen(50, fresh()).missing(100, 1).contradicts(&[0, 100]);
    assert!(found.text.contains("get job 1 → refused, 404 job-not-found"), "{found}");
    Story::default().enqueued(0, fresh()).missing(100, 1).contradicts(&[0, 100]);
}

#[test]
fn a_job_may_go_by_deletion_or_retention_only() {
    let delete =
        |told| Story::default().enqueued(0, fresh()).operated(50, Action::Delete, told).missing(100, 1);
    delete(Told::Done { until_ms: None }).holds();
    delete(Told::Nothing).holds();
    delete(refused(503, "store-busy")).contradicts(&[0, 50, 100]);
    let pruned = |after: u64| {
        let rules = Rules { completed_kept_ms: Some(500), ..Rules::default() };
        let mut story = begun(60_000)
            .completed(200, "a", View { attempt: 1, ..idle(fresh(), 3, Status::Completed) })
            .missing(after, 1);
        story.history.rules = rules;
        story
    };
    pruned(800).holds();
    pruned(600).contradicts(&[200, 600]);
}

#[test]
fn two_jobs_for_one_key_are_refused() {
    let keyed = |id| View { id, key: Some("k".to_owned()), ..fresh() };
    let found = Story::default().enqueued(0, keyed(1)).enqueued(100, keyed(2)).contradicts(&[0, 100]);
    assert!(found.text.contains("enqueue with the key k"), "{found}");
    assert_eq!(found.jobs, [1, 2]);
    // At the same time, too.
    let asked = Asked::Enqueue {
        mark: None,
        key: Some(Key { name: "k".to_owned(), scope: Scope::Forever, ttl_ms: 0 }),
    };
    let both = |second| {
        Story::default().call((0, 100), asked.clone(), Told::Job(keyed(1))).call(
            (1, 99),
            asked.clone(),
            second,
        )
    };
    both(Told::Job(keyed(2))).contradicts(&[0, 1]);
    both(Told::Again(keyed(1))).holds();
}

#[test]
fn a_key_is_free_when_its_scope_says_so() {
    let keyed = |id| View { id, key: Some("k".to_owned()), ..fresh() };
    let asked =
        |scope, ttl_ms| Asked::Enqueue { mark: None, key: Some(Key { name: "k".to_owned(), scope, ttl_ms }) };
    let ended = |scope, ttl_ms, second: u64| {
        Story::default()
            .at(0, asked(scope, ttl_ms), Told::Job(keyed(1)))
            .claimed(100, held(keyed(1), (2, 1), "a", (105, 60_000)))
            .completed(200, "a", View { attempt: 1, ..idle(keyed(1), 3, Status::Completed) })
            .at(second, asked(scope, ttl_ms), Told::Job(keyed(2)))
    };
    ended(Scope::Unfinished, 0, 300).holds();
    ended(Scope::Waiting, 0, 300).holds();
    ended(Scope::Ttl, 1000, 1300).holds();
    ended(Scope::Ttl, 1000, 1100).contradicts(&[200, 1100]);
    ended(Scope::Forever, 0, 9000).contradicts(&[200, 9000]);
}

#[test]
fn a_report_with_a_stale_lease_is_refused() {
    let counted = |told| taken_over().said(2100, ("a", done()), told);
    // That `a` claimed is in the token itself.
    counted(Told::Job(lost(idle(fresh(), 5, Status::Completed)))).contradicts(&[2000, 2100]);
    counted(refused(409, "lease-lost")).holds();
    // A lease that nobody was given.
    begun(60_000)
        .completed(200, "x", View { attempt: 1, ..idle(fresh(), 3, Status::Completed) })
        .contradicts(&[200]);
}

#[test]
fn a_job_that_a_live_lease_holds_is_not_handed_out() {
    let second = |at: u64, ms: i64| {
        let lost = View { retry_count: 1, lease_losses: 1, verify: true, ..fresh() };
        begun(ms).claimed(at, held(lost, (4, 2), "b", (i64::try_from(at).expect("small") + 5, 60_000)))
    };
    second(1200, 1000).holds();
    let found = second(900, 1000).contradicts(&[100, 900]);
    assert!(found.text.contains("a holds the job under a lease that ends not before 1.100 s"), "{found}");
    // A heartbeat that was answered moved the end.
    let lost = View { retry_count: 1, lease_losses: 1, verify: true, ..fresh() };
    begun(1000)
        .beat(800, "a", Told::Done { until_ms: Some(1805) })
        .claimed(1500, held(lost, (4, 2), "b", (1505, 60_000)))
        .contradicts(&[100, 800, 1500]);
}

#[test]
fn what_was_seen_does_not_go_back() {
    let story = begun(60_000)
        .completed(200, "a", View { attempt: 1, ..idle(fresh(), 3, Status::Completed) })
        .seen(300, View { attempt: 1, ..idle(fresh(), 3, Status::Completed) });
    story.clone().seen(400, held(fresh(), (2, 1), "a", (105, 60_000))).contradicts(&[200, 400]);
    story.seen(400, fresh()).contradicts(&[200, 400]);
    begun(60_000).seen(200, fresh()).contradicts(&[100, 200]);
}

#[test]
fn an_acknowledged_completion_that_is_pending_later_is_refused() {
    let requeued = View { attempt: 1, retry_count: 1, ..idle(fresh(), 3, Status::Pending) };
    let found = begun(1000)
        .completed(200, "a", View { attempt: 1, ..idle(fresh(), 3, Status::Completed) })
        .seen(5000, requeued)
        .contradicts(&[200, 5000]);
    assert!(found.text.contains("5.000 s to 5.010 s"), "{found}");
}

#[test]
fn a_result_is_what_the_completion_said() {
    let with = |result: &str| Some(Whole { result: Some(result.to_owned()), checkpoint: None });
    let completed = View { attempt: 1, ..idle(fresh(), 3, Status::Completed) };
    let said = Said::Completed { result: Some("1".to_owned()) };
    let story =
        begun(60_000).said(200, ("a", said), Told::Job(View { whole: with("1"), ..completed.clone() }));
    story.clone().seen(300, View { whole: with("1"), ..completed.clone() }).holds();
    // Nobody ever said so.
    story.seen(300, View { whole: with("2"), ..completed }).contradicts(&[300]);
}

#[test]
fn a_call_without_an_answer_happened_or_not() {
    let silent = |then: View| begun(60_000).said(200, ("a", done()), Told::Nothing).seen(300, then);
    silent(View { attempt: 1, ..idle(fresh(), 3, Status::Completed) }).holds();
    silent(held(fresh(), (2, 1), "a", (105, 60_000))).holds();
    // Once it is seen to have happened it stays so.
    silent(View { attempt: 1, ..idle(fresh(), 3, Status::Completed) })
        .seen(400, held(fresh(), (2, 1), "a", (105, 60_000)))
        .contradicts(&[300, 400]);
    // It did not happen after the server was gone.
    let mut story = silent(held(fresh(), (2, 1), "a", (105, 60_000)));
    story = story.seen(500, View { attempt: 1, ..idle(fresh(), 3, Status::Completed) });
    story.holds();
    story.history.rules.stopped_ns = vec![250_000_000];
    story.contradicts(&[300, 500]);
    // After a stop in order silence means no.
    let mut story = silent(View { attempt: 1, ..idle(fresh(), 3, Status::Completed) });
    story.history.rules.silence = crate::Silence::MeansNo;
    assert_eq!(story.check().contradictions.len(), 1);
}

#[test]
fn keys_of_one_bulk_without_an_answer_have_nothing_to_do_with_each_other() {
    let asked = |name: &str| Asked::Enqueue {
        mark: Some(format!("m-{name}")),
        key: Some(Key { name: name.to_owned(), scope: Scope::Forever, ttl_ms: 0 }),
    };
    // Both were made, as those learn who come later, though nobody ever shows their jobs.
    let both = Story::default()
        .at(0, asked("k"), Told::Nothing)
        .at(0, asked("l"), Told::Nothing)
        .at(100, asked("k"), refused(409, "duplicate"))
        .at(100, asked("l"), refused(409, "duplicate"));
    both.holds();
    assert_eq!(both.check().parts, 2);
}

#[test]
fn a_claim_without_an_answer_may_hold_the_job() {
    let asked = |worker: &str| Asked::Claim {
        worker: worker.to_owned(),
        request: Some("r".to_owned()),
        lease_ms: Some(60_000),
    };
    let view = held(fresh(), (2, 1), "a", (105, 60_000));
    let silent = Story::default().enqueued(0, fresh()).at(100, asked("a"), Told::Nothing);
    let again = Told::Lease { view: view.clone(), lease: "L-a".to_owned(), again: true };
    silent.clone().at(200, asked("a"), again.clone()).holds();
    silent.clone().seen(200, view.clone()).holds();
    // The server gave it back: nobody read the answer.
    let given_back = View { release_count: 1, ..held(fresh(), (4, 1), "b", (205, 60_000)) };
    silent.clone().claimed(200, given_back.clone()).holds();
    begun(60_000).claimed(200, given_back).contradicts(&[100, 200]);
    // With a cancel that waits that was the holder's next word.
    let cancel = Action::Cancel { wait: true };
    let stopping = View { version: 3, cancel_requested: true, ..view.clone() };
    let cancelled = View { attempt: 1, ..idle(fresh(), 4, Status::Cancelled) };
    let stopped =
        |story: Story| story.operated(150, cancel, Told::Job(stopping.clone())).seen(200, cancelled.clone());
    stopped(silent).holds();
    stopped(begun(60_000)).contradicts(&[100, 200]);
    // But a claim that nobody made holds nothing.
    let story = Story::default().enqueued(0, fresh());
    story.at(200, asked("a"), again).contradicts(&[200]);
}

#[test]
fn a_report_without_a_token_counts_only_if_it_can_be_nobody_elses() {
    let tokenless = |worker: &str| Asked::Report {
        job: 1,
        by: By { lease: None, worker: Some(worker.to_owned()) },
        said: done(),
    };
    let completed = View { attempt: 1, ..idle(fresh(), 3, Status::Completed) };
    begun(60_000).at(200, tokenless("a"), Told::Job(completed.clone())).holds();
    begun(60_000).at(200, tokenless("b"), Told::Job(completed)).contradicts(&[200]);
    let believed = Told::Job(lost(idle(fresh(), 5, Status::Completed)));
    taken_over().at(2100, tokenless("b"), believed).contradicts(&[100, 2100]);
    taken_over().at(2100, tokenless("b"), refused(409, "lease-required")).holds();
}

#[test]
fn counters_follow_the_rules() {
    let failed = |view: View| {
        begun(60_000).said(200, ("a", Said::Failed { class: Class::Transient }), Told::Job(view))
    };
    let right = View { attempt: 1, retry_count: 1, ..idle(fresh(), 3, Status::Pending) };
    failed(right.clone()).holds();
    failed(View { retry_count: 2, ..right.clone() }).contradicts(&[200]);
    failed(View { verify: true, ..right.clone() }).contradicts(&[200]);
    failed(View {
        attempt: 1,
        reason: Some("retries_exhausted".to_owned()),
        ..idle(right, 3, Status::Failed)
    })
    .contradicts(&[200]);
}

#[test]
fn the_history_of_attempts_tells_the_same() {
    let attempt = |worker: &str, claimed_ms, outcome: Option<&str>| Attempt {
        worker: worker.to_owned(),
        claimed_ms,
        outcome: outcome.map(str::to_owned),
        class: None,
    };
    let told = |list: Vec<Attempt>| taken_over().at(2100, Asked::Attempts { job: 1 }, Told::Attempts(list));
    let (a, b) = (attempt("a", 105, Some("lease_expired")), attempt("b", 2005, None));
    told(vec![a.clone(), b.clone()]).holds();
    told(vec![b.clone()]).contradicts(&[100, 2100]);
    told(vec![attempt("a", 105, Some("completed")), b]).contradicts(&[2100]);
}

#[test]
fn a_lease_that_must_be_over_is_not_extended() {
    let mut story = begun(1000).beat(5000, "a", Told::Done { until_ms: Some(6005) });
    story.holds();
    story.history.rules.lease_late_ms = Some(1000);
    story.contradicts(&[100, 5000]);
}

#[test]
fn a_heartbeat_does_not_shorten_a_lease() {
    begun(60_000).beat(200, "a", Told::Done { until_ms: Some(30_000) }).contradicts(&[100, 200]);
}

#[test]
fn nothing_is_handed_out_before_it_is_due() {
    let later = View { due_ms: 5000, ..fresh() };
    Story::default()
        .enqueued(0, later.clone())
        .claimed(100, held(later, (2, 1), "a", (105, 1000)))
        .contradicts(&[100]);
}

#[test]
fn operators_are_told_what_is_true() {
    let cancelled = idle(fresh(), 2, Status::Cancelled);
    let story = Story::default().enqueued(0, fresh()).operated(
        100,
        Action::Cancel { wait: false },
        Told::Job(cancelled.clone()),
    );
    story.clone().operated(200, Action::Cancel { wait: false }, Told::Job(cancelled)).holds();
    story.clone().operated(200, Action::ForceFail, refused(409, "cancelled")).holds();
    story.clone().operated(200, Action::Discard, refused(409, "use-cancel")).contradicts(&[100, 200]);
    story.claimed(200, held(fresh(), (3, 1), "a", (205, 1000))).contradicts(&[100, 200]);
}
