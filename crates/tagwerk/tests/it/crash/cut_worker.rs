//! What is shipped, behind connections that are cut at random: `tagwerk work` runs each job once, `tagwerk enqueue` makes each
//! one once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cut::outcomes;
use super::proxy::{Cut, End, Proxy};
use super::seed;
use crate::server::{Server, tagwerk};
use crate::support::dice::Dice;
use crate::support::{enqueue_all, in_parallel, job, list};
use crate::work_process::Worker;

const JOBS: usize = 30;
/// Of a hundred requests so many are cut.
const CHANCE: u64 = 25;

/// A server, and a proxy before it that cuts at random. None is left silent: how long the programs wait is tried elsewhere.
fn behind_a_proxy() -> (Server, Proxy) {
    let seed = seed();
    eprintln!("TAGWERK_CRASH_SEED={seed}");
    let mut dice = Dice::new(seed, 0);
    let loud: Vec<Cut> = Cut::ALL.into_iter().filter(|cut| *cut != Cut::Silent).collect();
    let server = Server::start();
    let proxy = Proxy::new(server.addr(), move || {
        let cut = if dice.percent(CHANCE) { *dice.pick(&loud) } else { Cut::None };
        (cut, if cut == Cut::AfterRequest { End::Fin } else { *dice.pick(&End::ALL) })
    });
    (server, proxy)
}

#[test]
fn the_worker_runs_each_job_once() {
    let (server, proxy) = behind_a_proxy();
    let mut client = server.client();
    let ids = enqueue_all(&mut client, &vec![json!({"type": "t", "queue": "q"}); JOBS]);
    let url = format!("http://{}", proxy.addr());
    let max = JOBS.to_string();
    let args =
        ["work", "--url", &url, "--queue", "q", "--concurrency", "4", "--max-jobs", &max, "--lease", "60s"];
    let command = ["--", "sh", "-c", "echo $TAGWERK_JOB_ID >> ran; echo $TAGWERK_JOB_ID"];
    let mut worker = Worker::spawn(&mut tagwerk(server.dir(), &[&args[..], &command].concat()));
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    let ran = std::fs::read_to_string(server.dir().join("ran")).expect("what has run");
    let mut ran: Vec<i64> = ran.lines().map(|id| id.parse().expect("an id")).collect();
    ran.sort_unstable();
    assert_eq!(ran, ids, "{:#?}", worker.said);
    for id in ids {
        let job = job(&mut client, id);
        assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!(id)), "{job}");
        assert_eq!(
            (&job["attempt"], &job["lease_losses"], &job["retry_count"]),
            (&json!(1), &json!(0), &json!(0)),
            "{job}"
        );
        assert_eq!(outcomes(&mut client, id), ["completed"]);
    }
    assert!(proxy.cuts() > 0, "nothing was cut");
    assert!(super::check_command(&server).is_none());
}

#[test]
fn enqueues_with_a_key_make_each_job_once() {
    let (server, proxy) = behind_a_proxy();
    let url = format!("http://{}", proxy.addr());
    let keys: Vec<String> = (0..JOBS).map(|n| format!("k-{n}")).collect();
    let told = in_parallel(
        (4, &keys),
        || server.client(),
        |_, key| {
            let args = ["enqueue", "t", "--url", &url, "--idempotency-key", key, "--json"];
            let mut tries = (0..50).map(|_| tagwerk(server.dir(), &args).output().expect("the binary"));
            // It asks once and says that it does not know; with a key it may simply be asked again.
            let output = tries.find(|output| output.status.code() != Some(3)).expect("an answer");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{key}: {said}");
            let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            shown["id"].as_i64().expect("an id")
        },
    );
    let made: BTreeSet<i64> =
        list(&mut server.client(), "").iter().filter_map(|job| job["id"].as_i64()).collect();
    assert_eq!(made.len(), JOBS);
    assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), made);
    assert!(proxy.cuts() > 0, "nothing was cut");
}
