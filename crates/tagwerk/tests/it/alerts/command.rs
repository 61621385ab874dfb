//! `alerts.command`: told once, whatever happens, and in nobody's way.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::{alerts, eventually, metric, quick, rung, told};
use crate::server::{Options, Server};
use crate::support::{enqueue, take};

fn failed(server: &Server) -> Option<f64> {
    let series = ["{outcome=\"failed\",way=\"command\"}", "{way=\"command\",outcome=\"failed\"}"];
    series.iter().find_map(|labels| metric(server, &format!("tagwerk_alert_messages_total{labels}")))
}

fn rings(options: Options) -> Options {
    options.set("alerts.no_worker=1s")
}

#[test]
fn a_command_that_is_missing_is_told_at_the_start_and_blocks_nothing() {
    let server = Server::with(rings(quick()).set("alerts.command=/no/such/program"));
    assert!(server.log().contains("alerts.command names a program that is not there"), "{}", server.log());
    let client = &mut server.client();
    enqueue(client, &json!({"type": "t", "queue": "q"}));
    rung(&server, "open", "no_worker");
    eventually("it was tried", || failed(&server).filter(|n| *n >= 1.0));
    assert!(server.log().contains("/no/such/program\\\" could not be started"), "{}", server.log());
    take(client, "w", "q").complete(client);
    rung(&server, "closed", "no_worker");
}

/// It is killed with its children, and not tried again: it may have told somebody.
#[test]
fn a_command_that_hangs_is_killed_with_its_children_and_blocks_nothing() {
    let options = rings(quick())
        .set("alerts.command_timeout=0.5s")
        .set("alerts.command=sh,-c,sleep 1000 & echo $! >> children; echo >> starts; wait");
    let server = Server::with(options);
    let client = &mut server.client();
    enqueue(client, &json!({"type": "t", "queue": "q"}));
    let alert = rung(&server, "open", "no_worker");
    // Meanwhile the queue works and the alert closes.
    take(client, "w", "q").complete(client);
    rung(&server, "closed", "no_worker");
    eventually("both messages were given up", || failed(&server).filter(|n| *n >= 2.0));
    assert!(server.log().contains("was killed"), "{}", server.log());
    let read = |name: &str| std::fs::read_to_string(server.dir().join(name)).unwrap_or_default();
    assert_eq!(read("starts").lines().count(), 2, "one for the opening, one for the closing of {alert}");
    for child in read("children").lines() {
        eventually("its child has ended", || {
            // A zombie has ended too, and waits only for whoever adopted it.
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        });
    }
}

/// An alert that was opened and not told before a `kill -9` is told by the next server, once.
#[test]
fn an_alert_that_was_not_told_before_a_kill_is_told_by_the_next_server() {
    let mut server = Server::with(rings(quick()).set("alerts.command=./tell"));
    let client = &mut server.client();
    enqueue(client, &json!({"type": "t", "queue": "q"}));
    let alert = rung(&server, "open", "no_worker");
    eventually("the program is not there", || failed(&server).filter(|n| *n >= 1.0));
    server.kill();
    let program = server.dir().join("tell");
    std::fs::write(&program, "#!/bin/sh\n(cat; echo) >> told\n").expect("to write the program");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("to make it one");
    server.start_again();
    let message = eventually("it was told", || told(&server).pop());
    assert_eq!(message["data"]["id"], alert["id"]);
    eventually("it is written down", || server.terminate().success().then_some(()));
    server.start_again();
    // The same alert goes on: after a restart nobody has yet been seen to ask, and nothing opens anew.
    eventually("it has looked", || metric(&server, "tagwerk_alerts_look_age_seconds"));
    assert_eq!(alerts(&server, "open").iter().map(|alert| &alert["id"]).collect::<Vec<_>>(), [&alert["id"]]);
    assert_eq!(told(&server).len(), 1);
}

/// The program learns nothing that is not for it.
#[test]
fn a_command_gets_none_of_our_variables() {
    let options = rings(quick()).set("alerts.command=sh,-c,env > env").env("TAGWERK_MAX_RETRIES", "3");
    let server = Server::with(options);
    enqueue(&mut server.client(), &json!({"type": "t", "queue": "q"}));
    let env = eventually("it ran", || {
        std::fs::read_to_string(server.dir().join("env")).ok().filter(|env| !env.is_empty())
    });
    assert!(env.contains("PATH=") && !env.contains("TAGWERK_"), "{env}");
}
