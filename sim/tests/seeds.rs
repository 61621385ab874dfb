//! A fixed set of seeds on every store, the seeds that once found something, and the proof that a seed repeats itself.

use tagwerk_sim::{Echo, Report, StoreKind, Tally, run};

/// Fails with everything that helps to see it again.
fn must_be_clean(report: &Report) {
    assert!(report.failure.is_none(), "{}", report.complaint().unwrap_or_default());
}

fn all_clean(seeds: std::ops::Range<u64>, store: StoreKind) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let report = run(seed, store, Echo::Off);
        must_be_clean(&report);
        tally.merge(&report.tally);
    }
    tally
}

/// What a fixed set must have met, so that its being clean means something.
const MUST_BE_SEEN: [(&str, &[&str]); 6] = [
    (
        "calls",
        &[
            "enqueue",
            "enqueue bulk",
            "claim",
            "claim, waiting",
            "bulk report and claim",
            "complete",
            "complete with follow-ups",
            "fail transient",
            "fail permanent",
            "fail unknown",
            "release",
            "heartbeat",
            "checkpoint",
            "cancel",
            "cancel, waiting",
            "retry",
            "discard",
            "force-fail",
            "delete",
            "unblock",
            "type settings",
            "fail and hold a limit",
            "limit set",
            "limit deleted",
            "limit shown",
            "limits listed",
            "queue bounded",
            "queue paused",
            "queue resumed",
            "queue drained",
            "queue opened",
        ],
    ),
    (
        "answers",
        &[
            "claim served",
            "claim repeated",
            "claim empty",
            "report repeated",
            "call accepted",
            "operator's action done",
        ],
    ),
    (
        "refusals",
        &[
            "already-reported",
            "lease-lost",
            "lease-lost, may report",
            "lease-required",
            "not-running",
            "cancelled",
            "version-changed",
            "not-failed",
            "use-cancel",
            "use-discard",
            "duplicate",
            "idempotency-key-reused",
            "not-atomic",
            "not-found",
            "not-holding",
            "timed-out, may report",
            "queue-full",
            "queue-draining",
            "queue-paused (other reasons)",
            "invalid (unknown limit)",
            "limit-in-use",
            "limit-not-found",
        ],
    ),
    ("failed calls", &["outcome-unknown", "store-busy", "draining"]),
    (
        "jobs by end",
        &[
            "completed",
            "cancelled",
            "worker_lost",
            "outcome_unknown",
            "permanent",
            "retries_exhausted",
            "expired",
        ],
    ),
    (
        "turns",
        &[
            "waits behind another one",
            "came",
            "came back behind another one",
            "lost to one that came back",
            "a failed head holds",
            "expired behind another one",
            "cancelled behind another one",
            "a person decides at the end",
        ],
    ),
];

#[test]
fn the_fixed_set_in_memory_is_clean_and_meets_everything() {
    let tally = all_clean(1..41, StoreKind::Memory);
    for (subject, names) in MUST_BE_SEEN {
        for name in names {
            assert!(tally.of(subject, name) > 0, "{subject}: {name} was never seen\n{}", tally.table());
        }
    }
    for fault in
        ["crash after commit", "crash before commit", "restart", "server stopped", "stall", "clock back"]
    {
        assert!(tally.of("faults", fault) > 0, "{fault} never happened\n{}", tally.table());
    }
}

#[test]
fn the_fixed_set_on_several_servers_is_clean() {
    all_clean(1..31, StoreKind::Nodes);
}

#[test]
fn the_fixed_set_on_sqlite_is_clean() {
    all_clean(1..10, StoreKind::Sqlite);
}

#[test]
fn seeds_that_once_found_something_are_clean() {
    let mut kept = 0;
    for line in include_str!("../seeds.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let seed = words.next().and_then(|word| word.parse().ok()).expect("a line begins with a seed");
        let store = words.next().and_then(StoreKind::from_name).expect("then comes a store");
        must_be_clean(&run(seed, store, Echo::Off));
        kept += 1;
    }
    assert!(kept > 0, "the file is there and has lines");
}

#[test]
fn a_seed_leads_to_the_same_trace_every_time() {
    for store in [StoreKind::Memory, StoreKind::Nodes] {
        let hashes: Vec<String> = (0..3).map(|_| run(5, store, Echo::Off).hash).collect();
        assert!(hashes.windows(2).all(|pair| pair[0] == pair[1]), "{hashes:?}");
        assert_ne!(hashes[0], run(6, store, Echo::Off).hash, "another seed is another run");
    }
}

#[test]
fn sqlite_and_memory_go_through_the_same_lines() {
    // Worlds without limits and bounds: where they are in use a store may wake who waits early.
    let worlds =
        (1..).map(|seed| run(seed, StoreKind::Memory, Echo::Off)).filter(|report| !report.is_bounded);
    let mut tally = Tally::default();
    for report in worlds.take(8) {
        let seed = report.seed;
        assert_eq!(report.hash, run(seed, StoreKind::Sqlite, Echo::Off).hash, "seed {seed}");
        tally.merge(&report.tally);
    }
    assert!(tally.of("calls", "complete with follow-ups") > 0, "{}", tally.table());
}
