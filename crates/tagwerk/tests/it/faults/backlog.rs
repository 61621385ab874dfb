//! K21: slow or fat with a big backlog. Nothing here is timed: what a call costs is counted in the server's processor time,
//! and compared with what it costs without the backlog in the same run. A claim that walked over the rows in front of it would
//! cost many times as much.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;
use crate::support::{Held, claim, claim_all, enqueue_all, in_parallel, linger, ms, setting};

/// Jobs in a bulk.
const BULK: usize = 5_000;
/// How many times as much a call may cost beside a backlog. Caches are shared with whatever else runs, so equal costs differ
/// by some tenths. (`cargo xtask bench scale` measures it closely.)
const AT_MOST: u64 = 2;

/// Puts so many of these jobs in. Their ids.
fn fill(client: &mut Client, count: usize, job: &Value) -> Vec<i64> {
    let full = (0..count / BULK).map(|_| BULK);
    let sizes: Vec<usize> = full.chain([count % BULK]).filter(|size| *size > 0).collect();
    sizes.into_iter().flat_map(|size| enqueue_all(client, &vec![job.clone(); size])).collect()
}

fn backlog(default: usize) -> usize {
    setting("TAGWERK_BACKLOG", default)
}

/// Reports all of these as completed in one call.
fn complete_all(client: &mut Client, held: &[Held]) {
    let report = |held: &Held| json!({"id": held.id, "lease": held.lease, "outcome": "completed"});
    let reports: Vec<Value> = held.iter().map(report).collect();
    for reports in reports.chunks(1_000) {
        let answer = client.post("/jobs/report/bulk", &json!({"reports": reports})).expect(200);
        assert!(answer["results"].as_array().expect("results").iter().all(|one| one["status"] == 200));
    }
}

/// Processor time of a server for something, in microseconds.
fn cost<R>(server: &Server, act: impl FnOnce() -> R) -> (u64, R) {
    let before = server.cpu_us();
    let done = act();
    (server.cpu_us().saturating_sub(before), done)
}

fn assert_like(costs: (u64, u64), what: &str) {
    let (beside, without) = costs;
    assert!(without > 10_000, "{without} µs are too few to compare with: {what}");
    assert!(beside <= without * AT_MOST, "{beside} µs instead of {without}: {what}");
}

/// With many scheduled jobs the query that promoted them took seconds.
#[test]
fn f127_jobs_for_tomorrow_cost_a_claim_nothing() {
    let due = json!({"type": "t", "queue": "q"});
    let servers = [Server::start(), Server::start()];
    let tomorrow = json!({"type": "t", "queue": "q", "delay_seconds": 86_400});
    fill(&mut servers[0].client(), backlog(10_000), &tomorrow);
    let mut costs = [0, 0];
    for round in 0..10 {
        for (server, total) in servers.iter().zip(&mut costs) {
            let mut client = server.client();
            let ids = enqueue_all(&mut client, &vec![due.clone(); 100]);
            let wish = json!({"worker_id": "w", "queues": ["q"], "max_jobs": 5});
            let (spent, held) = cost(server, || -> Vec<Held> {
                (0..20).flat_map(|_| claim_all(&mut client, &wish)).collect()
            });
            *total += spent;
            assert_eq!(held.iter().map(|held| held.id).collect::<Vec<_>>(), ids, "round {round}");
            complete_all(&mut client, &held);
        }
    }
    assert_like((costs[0], costs[1]), "a thousand jobs by five");
}

/// At half a million waiting rows the workers fought over the same first row, and throughput fell to nothing.
#[test]
fn f128_many_workers_do_not_fight_over_the_first_job() {
    let server = Server::start();
    let mut client = server.client();
    let ids: BTreeSet<i64> =
        fill(&mut client, backlog(5_000), &json!({"type": "t", "queue": "q"})).into_iter().collect();
    let commits = |client: &mut Client| {
        client.get("/stats").expect(200)["commits"]["commits"].as_u64().expect("a number")
    };
    let calls: Vec<usize> = (0..400).collect();
    let mut taken = BTreeSet::new();
    let (mut costs, mut written) = ([0, 0], [0, 0]);
    for round in 0..2 {
        for (at, workers) in [4, 32].into_iter().enumerate() {
            let before = commits(&mut client);
            let (spent, held) = cost(&server, || {
                in_parallel(
                    (workers, &calls),
                    || server.client(),
                    |client, n| {
                        let wish = json!({"worker_id": format!("w{n}"), "queues": ["q"]});
                        claim(client, &wish).expect("a job at the first time of asking").id
                    },
                )
            });
            costs[at] += spent;
            written[at] += commits(&mut client) - before;
            let fresh = held.into_iter().filter(|id| taken.insert(*id)).count();
            assert_eq!(fresh, calls.len(), "round {round}: each goes to one");
        }
    }
    assert!(ids.iter().take(taken.len()).eq(&taken), "and the first come first");
    assert_like((costs[1], costs[0]), "32 workers and 4");
    assert!(written[1] <= written[0] * 11 / 10, "32 workers share commits better than 4: {written:?}");
}

/// 100,000 jobs were planned for one moment: the planner locked all of them before it took a few.
#[test]
fn f129_a_claim_takes_a_few_of_many_that_are_due_at_once_and_leaves_the_others() {
    let server = Server::start();
    let mut client = server.client();
    let now = ms(&client.get("/stats").expect(200)["now"]).expect("a time");
    let run_at = tagwerk_api::format_rfc3339(now + setting::<i64>("TAGWERK_BACKLOG_DUE_MS", 3_000));
    let ids = fill(&mut client, backlog(8_000), &json!({"type": "t", "queue": "q", "run_at": run_at}));
    let mut expected = ids.iter().copied();
    let mut take = |client: &mut Client, max: usize| {
        let wish = json!({"worker_id": "w", "queues": ["q"], "max_jobs": max, "wait_seconds": 50});
        let (spent, held) = cost(&server, || claim_all(client, &wish));
        let wanted: Vec<i64> = expected.by_ref().take(max).collect();
        assert_eq!(held.iter().map(|held| held.id).collect::<Vec<_>>(), wanted, "the first, each once");
        complete_all(client, &held);
        spent
    };
    // All come due: the first claim waits for that.
    take(&mut client, 100);
    let beside = (0..10).map(|_| take(&mut client, 100)).sum();
    for _ in 0..(ids.len() - 2_100) / 1_000 {
        take(&mut client, 1_000);
    }
    take(&mut client, (ids.len() - 2_100) % 1_000);
    let without = (0..10).map(|_| take(&mut client, 100)).sum();
    assert_like((beside, without), "a thousand jobs by a hundred");
}

mod needs_sqlite3 {
    use super::*;
    use crate::faults::store::needs_sqlite3::Shell;

    /// A long-lived transaction elsewhere kept the store from cleaning up, and claims became slow for everybody.
    /// (PostgreSQL, with its vacuum, is another matter.)
    #[test]
    fn f130_a_forgotten_transaction_of_a_reader_slows_nobody_and_is_seen() {
        let server = Server::start();
        let mut client = server.client();
        let log = |client: &mut Client| {
            client.get("/stats").expect(200)["store"]["wal_bytes"].as_i64().expect("bytes")
        };
        let claims = |client: &mut Client| {
            let ids = enqueue_all(client, &vec![json!({"type": "t", "queue": "q"}); 1_000]);
            let wish = json!({"worker_id": "w", "queues": ["q"], "max_jobs": 10});
            let (spent, held) =
                cost(&server, || -> Vec<Held> { (0..100).flat_map(|_| claim_all(client, &wish)).collect() });
            assert_eq!(held.iter().map(|held| held.id).collect::<Vec<_>>(), ids);
            spent
        };
        let bulky = vec![json!({"type": "t", "queue": "bulky", "payload": "x".repeat(50_000)}); 50];
        // Each is some two and a half megabytes.
        let grow = |client: &mut Client, times| (0..times).for_each(|_| drop(enqueue_all(client, &bulky)));
        grow(&mut client, 10);
        let (without, usual) = (claims(&mut client), log(&mut client));
        let mut shell = Shell::open(&server);
        shell.tell("BEGIN; SELECT 'jobs', count(*) FROM job;");
        grow(&mut client, 24);
        let beside = claims(&mut client);
        let longest = log(&mut client);
        assert_like((beside, without), "a thousand jobs by ten");
        // Nothing of it can be used anew: longer than it ever gets by itself, and there for everybody to see.
        assert!(longest > 56 * 1024 * 1024 && longest > usual * 3 / 2, "{longest} bytes, {usual} before");
        shell.tell("COMMIT;");
        shell.close();
        let mut seconds = 0;
        while log(&mut client) > longest / 4 {
            seconds += 1;
            assert!(seconds < 60, "it does not recover: {} of {longest} bytes", log(&mut client));
            linger(&mut client, 1.0);
        }
    }
}
