//! What the rules say: every kind of state × every call × every kind of caller, written out from the description of the
//! state machine, not from the code.
//!
//! Rows are states, columns are callers:
//!
//! | column | who calls |
//! |---|---|
//! | `T` | with the token of the live lease |
//! | `N` | with the token of the newest lease, which has ended: late after a loss, repeated after a report |
//! | `X` | with the token of an older lease, which was lost |
//! | `R` | with the token of an older lease, which reported a transient failure |
//! | `?` | with a token that was never granted |
//! | `-` | without a token, nothing else said |
//! | `=` | without a token, as `worker_id` of the newest lease |
//! | `/` | without a token, as another `worker_id` |
//! | `-X` | without a token, where an older lease was lost |
//!
//! | cell | meaning |
//! |---|---|
//! | `.` | there is no such caller in this state |
//! | `ok` | 200, and the job stands where it stood |
//! | `ok:STANDING` | 200, and then it stands so |
//! | `again` | 200, said before (`Report-Replayed`), nothing changes |
//! | `CODE` | 409 with this code, nothing changes, nothing more may be reported |
//! | `CODE+` | the same, but the outcome may be reported |
//! | `CODE:STANDING` | 409, and then it stands so |
//!
//! Codes: `lost` lease-lost, `timed` timed-out, `gone` cancelled, `idle` not-running, `said` already-reported, `need`
//! lease-required. A standing is the status with its reason (`failed-permanent`) or, while pending, the retries used and
//! whether the next attempt has to look first (`pending-1-verify`).

/// Callers, in the order of the columns.
pub(super) const CALLERS: [&str; 9] = ["T", "N", "X", "R", "?", "-", "=", "/", "-X"];

/// `heartbeat` and `checkpoint`: only for the holder, and never without the token.
pub(super) const CONTACT: &str = "
                   T               N       X     R     ?     -     =     /     -X
new                .               .       .     .     lost  need  need  need  .
after-failure      .               lost    lost  lost  lost  need  need  need  need
after-release      .               lost    lost  lost  lost  need  need  need  need
after-loss         .               lost+   lost  lost  lost  need  need  need  need
after-time-out     .               timed+  lost  lost  lost  need  need  need  need
retried            .               lost    lost  lost  lost  need  need  need  need
running            ok              .       lost  lost  lost  need  need  need  need
stopping           gone:cancelled  .       lost  lost  lost  need  need  need  need
completed          .               idle    idle  idle  idle  need  need  need  need
failed-reported    .               lost    lost  lost  lost  need  need  need  need
failed-by-loss     .               lost+   lost  lost  lost  need  need  need  need
failed-by-age      .               lost+   lost  lost  lost  need  need  need  need
failed-by-force    .               lost    lost  lost  lost  need  need  need  need
cancelled-pending  .               .       .     .     gone  need  need  need  .
cancelled-running  .               gone    gone  gone  gone  need  need  need  need
cancelled-at-end   .               gone    gone  gone  gone  need  need  need  need
";

/// `complete`.
pub(super) const COMPLETE: &str = "
                   T               N             X     R     ?     -               =               /     -X
new                .               .             .     .     lost  idle            idle            idle  .
after-failure      .               said          lost  said  lost  said            said            need  need
after-release      .               said          lost  said  lost  said            said            need  need
after-loss         .               ok:completed  lost  said  lost  ok:completed    ok:completed    need  need
after-time-out     .               ok:completed  lost  said  lost  ok:completed    ok:completed    need  need
retried            .               lost          lost  said  lost  lost            lost            need  need
running            ok:completed    .             lost  said  lost  ok:completed    ok:completed    need  need
stopping           gone:cancelled  .             lost  said  lost  gone:cancelled  gone:cancelled  need  need
completed          .               again         lost  said  lost  again           again           need  need
failed-reported    .               said          lost  said  lost  said            said            need  need
failed-by-loss     .               ok:completed  lost  said  lost  ok:completed    ok:completed    need  need
failed-by-age      .               ok:completed  lost  said  lost  ok:completed    ok:completed    need  need
failed-by-force    .               lost          lost  said  lost  lost            lost            need  need
cancelled-pending  .               .             .     .     gone  gone            gone            gone  .
cancelled-running  .               gone          gone  said  gone  gone            gone            gone  gone
cancelled-at-end   .               gone          gone  said  gone  gone            gone            gone  gone
";

/// `fail` with class `transient`. The older lease (`R`) said the same before.
pub(super) const FAIL_TRANSIENT: &str = "
                   T               N                  X     R      ?     -                  =                  /     -X
new                .               .                  .     .      lost  idle               idle               idle  .
after-failure      .               again              lost  again  lost  again              again              need  need
after-release      .               said               lost  again  lost  said               said               need  need
after-loss         .               ok:pending-1       lost  again  lost  ok:pending-1       ok:pending-1       need  need
after-time-out     .               ok:pending-1       lost  again  lost  ok:pending-1       ok:pending-1       need  need
retried            .               lost               lost  again  lost  lost               lost               need  need
running            ok:pending-1    .                  lost  again  lost  ok:pending-1       ok:pending-1       need  need
stopping           gone:cancelled  .                  lost  again  lost  gone:cancelled     gone:cancelled     need  need
completed          .               said               lost  again  lost  said               said               need  need
failed-reported    .               said               lost  again  lost  said               said               need  need
failed-by-loss     .               ok:pending-1       lost  again  lost  ok:pending-1       ok:pending-1       need  need
failed-by-age      .               ok:failed-expired  lost  again  lost  ok:failed-expired  ok:failed-expired  need  need
failed-by-force    .               lost               lost  again  lost  lost               lost               need  need
cancelled-pending  .               .                  .     .      gone  gone               gone               gone  .
cancelled-running  .               gone               gone  again  gone  gone               gone               gone  gone
cancelled-at-end   .               gone               gone  again  gone  gone               gone               gone  gone
";

/// `fail` with class `permanent`. The job that failed by its own report (`failed-reported`) said the same before.
pub(super) const FAIL_PERMANENT: &str = "
                   T                    N                    X     R     ?     -                    =                    /     -X
new                .                    .                    .     .     lost  idle                 idle                 idle  .
after-failure      .                    said                 lost  said  lost  said                 said                 need  need
after-release      .                    said                 lost  said  lost  said                 said                 need  need
after-loss         .                    ok:failed-permanent  lost  said  lost  ok:failed-permanent  ok:failed-permanent  need  need
after-time-out     .                    ok:failed-permanent  lost  said  lost  ok:failed-permanent  ok:failed-permanent  need  need
retried            .                    lost                 lost  said  lost  lost                 lost                 need  need
running            ok:failed-permanent  .                    lost  said  lost  ok:failed-permanent  ok:failed-permanent  need  need
stopping           gone:cancelled       .                    lost  said  lost  gone:cancelled       gone:cancelled       need  need
completed          .                    said                 lost  said  lost  said                 said                 need  need
failed-reported    .                    again                lost  said  lost  again                again                need  need
failed-by-loss     .                    ok:failed-permanent  lost  said  lost  ok:failed-permanent  ok:failed-permanent  need  need
failed-by-age      .                    ok:failed-permanent  lost  said  lost  ok:failed-permanent  ok:failed-permanent  need  need
failed-by-force    .                    lost                 lost  said  lost  lost                 lost                 need  need
cancelled-pending  .                    .                    .     .     gone  gone                 gone                 gone  .
cancelled-running  .                    gone                 gone  said  gone  gone                 gone                 gone  gone
cancelled-at-end   .                    gone                 gone  said  gone  gone                 gone                 gone  gone
";

/// `fail` with class `unknown`: the next attempt has to look first.
pub(super) const FAIL_UNKNOWN: &str = "
                   T                    N                    X     R     ?     -                    =                    /     -X
new                .                    .                    .     .     lost  idle                 idle                 idle  .
after-failure      .                    said                 lost  said  lost  said                 said                 need  need
after-release      .                    said                 lost  said  lost  said                 said                 need  need
after-loss         .                    ok:pending-1-verify  lost  said  lost  ok:pending-1-verify  ok:pending-1-verify  need  need
after-time-out     .                    ok:pending-1-verify  lost  said  lost  ok:pending-1-verify  ok:pending-1-verify  need  need
retried            .                    lost                 lost  said  lost  lost                 lost                 need  need
running            ok:pending-1-verify  .                    lost  said  lost  ok:pending-1-verify  ok:pending-1-verify  need  need
stopping           gone:cancelled       .                    lost  said  lost  gone:cancelled       gone:cancelled       need  need
completed          .                    said                 lost  said  lost  said                 said                 need  need
failed-reported    .                    said                 lost  said  lost  said                 said                 need  need
failed-by-loss     .                    ok:pending-1-verify  lost  said  lost  ok:pending-1-verify  ok:pending-1-verify  need  need
failed-by-age      .                    ok:failed-expired    lost  said  lost  ok:failed-expired    ok:failed-expired    need  need
failed-by-force    .                    lost                 lost  said  lost  lost                 lost                 need  need
cancelled-pending  .                    .                    .     .     gone  gone                 gone                 gone  .
cancelled-running  .                    gone                 gone  said  gone  gone                 gone                 gone  gone
cancelled-at-end   .                    gone                 gone  said  gone  gone                 gone                 gone  gone
";

/// `release`: the attempt did nothing, so what a loss had counted is taken back.
pub(super) const RELEASE: &str = "
                   T               N                  X     R     ?     -                  =                  /     -X
new                .               .                  .     .     lost  idle               idle               idle  .
after-failure      .               said               lost  said  lost  said               said               need  need
after-release      .               again              lost  said  lost  again              again              need  need
after-loss         .               ok:pending-0       lost  said  lost  ok:pending-0       ok:pending-0       need  need
after-time-out     .               ok:pending-0       lost  said  lost  ok:pending-0       ok:pending-0       need  need
retried            .               lost               lost  said  lost  lost               lost               need  need
running            ok:pending-0    .                  lost  said  lost  ok:pending-0       ok:pending-0       need  need
stopping           gone:cancelled  .                  lost  said  lost  gone:cancelled     gone:cancelled     need  need
completed          .               said               lost  said  lost  said               said               need  need
failed-reported    .               said               lost  said  lost  said               said               need  need
failed-by-loss     .               ok:pending-0       lost  said  lost  ok:pending-0       ok:pending-0       need  need
failed-by-age      .               ok:failed-expired  lost  said  lost  ok:failed-expired  ok:failed-expired  need  need
failed-by-force    .               lost               lost  said  lost  lost               lost               need  need
cancelled-pending  .               .                  .     .     gone  gone               gone               gone  .
cancelled-running  .               gone               gone  said  gone  gone               gone               gone  gone
cancelled-at-end   .               gone               gone  said  gone  gone               gone               gone  gone
";

/// What the columns of [`OPERATORS`] call.
pub(super) const OPERATIONS: [&str; 6] =
    ["cancel", "cancel-wait", "retry", "discard", "force-fail", "delete"];

/// Operators who have seen the job as it is, or who name no version where none is needed. `ok` without a standing: the
/// same was done before, or nothing is left to do. After `delete` nothing stands any more.
pub(super) const OPERATORS: &str = "
                   cancel             cancel-wait        retry                discard           force-fail        delete
new                ok:cancelled       ok:cancelled       not-failed           use-cancel        not-running       ok:erased
after-failure      ok:cancelled       ok:cancelled       not-failed           use-cancel        not-running       ok:erased
after-release      ok:cancelled       ok:cancelled       not-failed           use-cancel        not-running       ok:erased
after-loss         ok:cancelled       ok:cancelled       not-failed           use-cancel        not-running       ok:erased
after-time-out     ok:cancelled       ok:cancelled       not-failed           use-cancel        not-running       ok:erased
retried            ok:cancelled       ok:cancelled       not-failed           use-cancel        not-running       ok:erased
running            ok:cancelled       ok:stopping        not-failed           use-cancel        ok:failed-forced  ok:erased
stopping           ok:cancelled       ok                 not-failed           use-cancel        ok:failed-forced  ok:erased
completed          already-completed  already-completed  not-failed           not-failed        not-running       ok:erased
failed-reported    use-discard        use-discard        ok:pending-0         ok:cancelled      ok                ok:erased
failed-by-loss     use-discard        use-discard        ok:pending-0-verify  ok:cancelled      ok                ok:erased
failed-by-age      use-discard        use-discard        ok:pending-0-verify  ok:cancelled      ok                ok:erased
failed-by-force    use-discard        use-discard        ok:pending-0-verify  ok:cancelled      ok                ok:erased
cancelled-pending  ok                 ok                 not-failed           ok                cancelled         ok:erased
cancelled-running  ok                 ok                 not-failed           ok                cancelled         ok:erased
cancelled-at-end   ok                 ok                 not-failed           ok                cancelled         ok:erased
";

/// What a claim gets: the number of the attempt and whether it has to look first, or nothing (`-`).
pub(super) const CLAIMS: &str = "
                   claim
new                1
after-failure      2
after-release      1
after-loss         2-verify
after-time-out     2-verify
retried            2-verify
running            -
stopping           -
completed          -
failed-reported    -
failed-by-loss     -
failed-by-age      -
failed-by-force    -
cancelled-pending  -
cancelled-running  -
cancelled-at-end   -
";

/// How a job of each state stands before the call, with nothing before that state.
pub(super) const STANDINGS: &str = "
                   standing
new                pending-0
after-failure      pending-1
after-release      pending-0
after-loss         pending-1-verify
after-time-out     pending-1-verify
retried            pending-0-verify
running            running
stopping           stopping
completed          completed
failed-reported    failed-permanent
failed-by-loss     failed-worker_lost
failed-by-age      failed-expired
failed-by-force    failed-forced
cancelled-pending  cancelled
cancelled-running  cancelled
cancelled-at-end   cancelled
";

/// The rows of a table: state, cells.
pub(super) fn rows(table: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut lines = table.trim_matches('\n').lines().map(str::split_whitespace);
    let columns = lines.next().map_or(0, Iterator::count);
    lines
        .map(|mut words| {
            let state = words.next().expect("a state");
            let cells: Vec<_> = words.collect();
            assert_eq!(cells.len(), columns, "{state}");
            (state, cells)
        })
        .collect()
}

/// The cell of a table that has one column.
pub(super) fn only(table: &'static str, state: &str) -> &'static str {
    rows(table).into_iter().find(|(name, _)| *name == state).map(|(_, cells)| cells[0]).expect("a row")
}

/// The problem code behind a word of the tables.
pub(super) fn code(word: &str) -> &str {
    match word {
        "lost" => "lease-lost",
        "timed" => "timed-out",
        "gone" => "cancelled",
        "idle" => "not-running",
        "said" => "already-reported",
        "need" => "lease-required",
        code => code,
    }
}

#[test]
fn every_table_has_every_state_once() {
    let states: Vec<_> = rows(STANDINGS).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states.len(), 16);
    for table in [CONTACT, COMPLETE, FAIL_TRANSIENT, FAIL_PERMANENT, FAIL_UNKNOWN, RELEASE, OPERATORS, CLAIMS]
    {
        assert_eq!(rows(table).into_iter().map(|(state, _)| state).collect::<Vec<_>>(), states);
    }
}
