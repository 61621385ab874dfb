//! Connections that end in the middle of a call, one kind of call and one kind of end after the other. The client repeats as
//! the documentation says, and in the end everything has happened once.

use std::time::Duration;

use serde_json::{Value, json};

use super::proxy::{Cut, End, Proxy};
use crate::client::{Answer, Client};
use crate::server::{JSON, Server};
use crate::support::{Held, attempts, claim, enqueue, id_of, job, list, pass, take, text};

/// When a client has had enough of a silent connection.
const PATIENCE: Duration = Duration::from_millis(300);

/// A server with a proxy before it.
struct Scene {
    server: Server,
    proxy: Proxy,
    /// A client that goes around the proxy.
    direct: Client,
}

impl Scene {
    fn new() -> Self {
        let server = Server::start();
        let proxy = Proxy::new(server.addr(), || (Cut::None, End::Fin));
        let direct = server.client();
        Self { server, proxy, direct }
    }

    /// Sends a call that is cut, and sends it again until it is answered, as its documentation says.
    fn call(&self, (cut, end): (Cut, End), path: &str, body: &Value) -> Answer {
        self.proxy.next(cut, end);
        // Only silence is to be given up; everything else may take the time that a busy machine needs.
        let patience = if cut == Cut::Silent { PATIENCE } else { Duration::from_secs(30) };
        let body = body.to_string();
        let send = |patience| {
            let mut client = Client::patient(self.proxy.addr(), patience);
            client.try_send(&format!("POST {path}"), &[JSON], body.as_bytes())
        };
        let first = send(patience);
        assert_eq!(first.is_ok(), cut == Cut::Drip, "{cut:?} {end:?}: {first:?}");
        first.unwrap_or_else(|_| send(Duration::from_secs(30)).expect("an answer to the second"))
    }

    /// Nothing is left over, and the store is sound.
    fn end(self) {
        drop(self.direct);
        self.proxy.settle();
        assert!(super::check_command(&self.server).is_none());
        assert!(!self.server.log().contains("panicked"), "the server panicked");
    }
}

/// Every cut with every end, and a name for what belongs to it.
fn cuts() -> impl Iterator<Item = ((Cut, End), String)> {
    let all = Cut::ALL.into_iter().flat_map(|cut| End::ALL.map(|end| (cut, end)));
    all.map(|cut| (cut, format!("q-{cut:?}").replace(['(', ')', ',', ' '], "")))
}

/// Whether the answer that got lost was there already, so that the second one must say that it repeats.
const fn was_answered(cut: Cut) -> bool {
    matches!(cut, Cut::BeforeAnswer | Cut::InAnswer | Cut::Silent)
}

/// How the attempts of a job ended. The server may have given leases back that nobody received.
pub(super) fn outcomes(client: &mut Client, id: i64) -> Vec<String> {
    let all =
        attempts(client, id).iter().map(|attempt| text(&attempt["outcome"]).to_owned()).collect::<Vec<_>>();
    let given_back = all.iter().take_while(|outcome| *outcome == "released").count();
    all[given_back..].to_vec()
}

#[test]
fn an_enqueue_with_a_key_that_is_cut_and_repeated_makes_one_job() {
    let mut scene = Scene::new();
    for ((cut, end), name) in cuts() {
        let sent = json!({"type": "t", "queue": "q", "idempotency_key": name, "payload": {"of": name}});
        let answer = scene.call((cut, end), "/jobs", &sent);
        let replayed = answer.header("idempotency-replayed") == Some("true");
        assert_eq!(answer.status, if replayed { 200 } else { 201 }, "{answer:?}");
        assert!(replayed || !was_answered(cut), "{cut:?} {end:?}: made again");
        assert!(!replayed || cut.may_be_done(), "{cut:?} {end:?}: half a request was taken");
        let found = list(&mut scene.direct, &format!("?idempotency_key={name}"));
        assert_eq!(found.iter().map(id_of).collect::<Vec<_>>(), [id_of(&answer.json())], "{cut:?} {end:?}");
    }
    scene.end();
}

#[test]
fn a_claim_with_a_request_id_that_is_cut_and_repeated_burns_no_attempt() {
    let mut scene = Scene::new();
    for ((cut, end), queue) in cuts() {
        let id = enqueue(&mut scene.direct, &json!({"type": "t", "queue": queue}));
        let wish = json!({"worker_id": "w", "queues": [queue], "lease_seconds": 60, "request_id": "r"});
        let held = Held::of(scene.call((cut, end), "/jobs/claim", &wish).expect(200));
        assert_eq!((held.id, &held.job["attempt"], &held.job["verify"]), (id, &json!(1), &json!(false)));
        assert!(held.job["replayed"] == true || !was_answered(cut), "{cut:?} {end:?}: {}", held.job);
        // Whatever the server makes of the connection that broke, it takes nothing from the worker.
        pass(&mut scene.direct, 0.02);
        assert_eq!(held.heartbeat(&mut scene.direct).expect(200)["continue"], true);
        let done = held.complete(&mut scene.direct);
        assert_eq!((&done["attempt"], &done["lease_losses"]), (&json!(1), &json!(0)), "{cut:?} {end:?}");
        assert_eq!(outcomes(&mut scene.direct, id), ["completed"], "{cut:?} {end:?}");
    }
    scene.end();
}

#[test]
fn reports_with_a_token_that_are_cut_and_repeated_count_once() {
    let mut scene = Scene::new();
    for (call, body, outcome) in [
        ("complete", json!({"result": {"n": 1}}), "completed"),
        ("fail", json!({"class": "transient", "error": "no"}), "failed"),
        ("release", json!({"reason": "no time"}), "released"),
    ] {
        for ((cut, end), queue) in cuts() {
            let id = enqueue(&mut scene.direct, &json!({"type": "t", "queue": format!("{call}-{queue}")}));
            let held = take(&mut scene.direct, "w", &format!("{call}-{queue}"));
            let mut body = body.clone();
            body["lease"] = json!(held.lease);
            let answer = scene.call((cut, end), &format!("/jobs/{id}/{call}"), &body);
            let shown = answer.expect(200);
            let replayed = answer.header("report-replayed") == Some("true");
            assert!(replayed || !was_answered(cut), "{call} {cut:?} {end:?}: counted twice");
            assert!(!replayed || cut.may_be_done(), "{call} {cut:?} {end:?}: half a request was taken");
            let retries = i64::from(call == "fail");
            assert_eq!(
                (&shown["retry_count"], &shown["lease_losses"]),
                (&json!(retries), &json!(0)),
                "{shown}"
            );
            let ended: Vec<Value> = attempts(&mut scene.direct, id);
            let ended: Vec<&str> = ended.iter().map(|attempt| text(&attempt["outcome"])).collect();
            assert_eq!(ended, [outcome], "{cut:?} {end:?}");
        }
    }
    let totals = scene.server.get("/stats").expect(200)["totals"].clone();
    let each = json!(Cut::ALL.len() * End::ALL.len());
    for counter in ["completions", "failures", "releases", "retries"] {
        assert_eq!(totals[counter], each, "{counter}: {totals}");
    }
    scene.end();
}

#[test]
fn heartbeats_that_are_cut_and_repeated_hold_the_job() {
    let mut scene = Scene::new();
    let id = enqueue(&mut scene.direct, &json!({"type": "t", "queue": "q"}));
    let held = take(&mut scene.direct, "w", "q");
    for (cut, _) in cuts() {
        let body = json!({"lease": held.lease, "progress": {"done": 1}});
        let beat = scene.call(cut, &format!("/jobs/{id}/heartbeat"), &body).expect(200);
        assert_eq!(beat["continue"], true, "{cut:?}: {beat}");
    }
    assert_eq!(held.complete(&mut scene.direct)["version"], json!(3), "heartbeats are no changes of state");
    assert_eq!(outcomes(&mut scene.direct, id), ["completed"]);
    scene.end();
}

#[test]
fn a_bulk_report_with_a_claim_that_is_cut_and_repeated_reports_once_and_claims_once() {
    let mut scene = Scene::new();
    for ((cut, end), queue) in cuts() {
        let jobs = [json!({"type": "t", "queue": queue}), json!({"type": "t", "queue": queue})];
        let ids = jobs.map(|job| enqueue(&mut scene.direct, &job));
        let held = take(&mut scene.direct, "w", &queue);
        assert_eq!(held.id, ids[0]);
        let wish = json!({"worker_id": "w", "queues": [queue], "max_jobs": 5, "lease_seconds": 60, "request_id": "r2"});
        let reports = json!([{"id": held.id, "lease": held.lease, "outcome": "completed"}]);
        let answer = scene
            .call((cut, end), "/jobs/report/bulk", &json!({"reports": reports, "claim": wish}))
            .expect(200);
        let result = &answer["results"][0];
        assert_eq!(
            (&result["status"], text(&result["job"]["status"])),
            (&json!(200), "completed"),
            "{answer}"
        );
        assert!(result["replayed"] == true || !was_answered(cut), "{cut:?} {end:?}: {answer}");
        let claimed = answer["jobs"].as_array().expect("jobs");
        assert_eq!(claimed.iter().map(id_of).collect::<Vec<_>>(), [ids[1]], "{cut:?} {end:?}: {answer}");
        pass(&mut scene.direct, 0.02);
        let next = Held::of(claimed[0].clone());
        assert_eq!(next.complete(&mut scene.direct)["attempt"], 1, "{cut:?} {end:?}");
        for id in ids {
            assert_eq!(outcomes(&mut scene.direct, id), ["completed"], "{cut:?} {end:?}");
        }
    }
    scene.end();
}

/// Whoever waits for a job and has gone gets none: it goes to the next, with its attempt number. Whoever was answered without
/// hearing it asks again by the same name.
#[test]
fn a_waiting_claim_that_is_cut_keeps_no_job() {
    let mut scene = Scene::new();
    for ((cut, end), queue) in cuts() {
        let wish = json!({"worker_id": "w", "queues": [queue], "lease_seconds": 60, "wait_seconds": 20, "request_id": "r"});
        scene.proxy.next(cut, end);
        let (proxy, sent) = (scene.proxy.addr(), wish.to_string());
        let waiting = std::thread::spawn(move || {
            // As patient as a client that waits has to be.
            let patience = if cut == Cut::Silent { 5 * PATIENCE } else { Duration::from_secs(30) };
            Client::patient(proxy, patience).try_send("POST /jobs/claim", &[JSON], sent.as_bytes())
        });
        let answered = was_answered(cut) || cut == Cut::Drip;
        // Those whose request does not arrive, or who do not stay for the answer, end by themselves.
        let early = if answered { Err(waiting) } else { Ok(waiting.join()) };
        if answered {
            wait_until_one_waits(&scene.server);
        }
        let id = enqueue(&mut scene.direct, &json!({"type": "t", "queue": queue}));
        let heard = early.unwrap_or_else(std::thread::JoinHandle::join).expect("no panic");
        assert_eq!(heard.is_ok(), cut == Cut::Drip, "{cut:?} {end:?}: {heard:?}");
        let held = match heard {
            Ok(answer) => Held::of(answer.expect(200)),
            Err(_) if answered => Held::of(scene.direct.post("/jobs/claim", &wish).expect(200)),
            Err(_) => take(&mut scene.direct, "other", &queue),
        };
        assert_eq!((held.id, &held.job["attempt"], &held.job["verify"]), (id, &json!(1), &json!(false)));
        assert!(held.job["replayed"] == true || !was_answered(cut), "{cut:?} {end:?}: {}", held.job);
        pass(&mut scene.direct, 0.02);
        held.complete(&mut scene.direct);
        assert_eq!(outcomes(&mut scene.direct, id), ["completed"], "{cut:?} {end:?}");
    }
    assert_eq!(scene.server.get("/stats").expect(200)["totals"]["lease_losses"], 0);
    scene.end();
}

/// Waits until a claim waits.
fn wait_until_one_waits(server: &Server) {
    let mut client = server.client();
    while !client.get("/metrics").text().lines().any(|line| line == "tagwerk_parked_claims 1") {
        client.get("/livez").expect(200);
    }
}

/// Without a `request_id` a claim cannot be repeated. What its lost answer held is not hidden from whoever runs it next.
#[test]
fn a_lost_claim_without_a_request_id_comes_back_as_an_attempt_of_unknown_outcome() {
    let mut scene = Scene::new();
    let lost = [Cut::BeforeAnswer, Cut::InAnswer, Cut::Silent]
        .into_iter()
        .flat_map(|cut| End::ALL.map(|end| (cut, end)));
    let mut ids = Vec::new();
    for (cut, end) in lost {
        ids.push(enqueue(
            &mut scene.direct,
            &json!({"type": "t", "queue": "q", "retry": {"base_seconds": 0}}),
        ));
        let wish = json!({"worker_id": "w", "queues": ["q"], "lease_seconds": 1});
        scene.proxy.next(cut, end);
        let mut client = Client::patient(scene.proxy.addr(), PATIENCE);
        let heard = client.try_send("POST /jobs/claim", &[JSON], wish.to_string().as_bytes());
        assert!(heard.is_err(), "{cut:?} {end:?}: {heard:?}");
    }
    for _ in &ids {
        let held = take(&mut scene.direct, "other", "q");
        assert!(ids.contains(&held.id), "{}", held.job);
        assert_eq!(
            (&held.job["attempt"], &held.job["verify"], &held.job["lease_losses"]),
            (&json!(2), &json!(true), &json!(1))
        );
        held.complete(&mut scene.direct);
    }
    assert!(claim(&mut scene.direct, &json!({"worker_id": "w", "queues": ["q"]})).is_none());
    for id in ids {
        let ended: Vec<String> = attempts(&mut scene.direct, id)
            .iter()
            .map(|attempt| text(&attempt["outcome"]).to_owned())
            .collect();
        assert_eq!(ended, ["lease_expired", "completed"], "job {}", job(&mut scene.direct, id));
    }
    scene.end();
}
