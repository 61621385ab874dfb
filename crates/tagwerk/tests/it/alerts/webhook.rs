//! `alerts.webhook` and `alerts.heartbeat_url`: signed, repeated within bounds, and nowhere inside.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::receiver::Receiver;
use super::{eventually, metric, quick, rung};
use crate::server::{Options, Server, tagwerk};
use crate::support::{enqueue, take};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A server whose queue rings, and who posts to this URL.
fn posting(url: &str, options: Options) -> Server {
    let options = options
        .set("alerts.no_worker=1s")
        .set(&format!("alerts.webhook={url}"))
        .set(&format!("alerts.webhook_secret={SECRET}"));
    let server = Server::with(options);
    enqueue(&mut server.client(), &json!({"type": "t", "queue": "q"}));
    server
}

/// This host may be inside.
fn inside(host: &str) -> Options {
    quick().set(&format!("alerts.internal_hosts={host}"))
}

fn messages(server: &Server, outcome: &str) -> f64 {
    let series = [
        format!("tagwerk_alert_messages_total{{way=\"webhook\",outcome=\"{outcome}\"}}"),
        format!("tagwerk_alert_messages_total{{outcome=\"{outcome}\",way=\"webhook\"}}"),
    ];
    series.iter().find_map(|series| metric(server, series)).unwrap_or_default()
}

fn failed(server: &Server) {
    eventually("the message was given up", || (messages(server, "failed") >= 1.0).then_some(()));
}

mod needs_python3 {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// What a receiver does by the specification of Standard Webhooks, written without ours.
    const VERIFY: &str = r#"
import base64, hashlib, hmac, sys
secret, ident, timestamp, signature = sys.argv[1:5]
body = sys.stdin.buffer.read()
key = base64.b64decode(secret.removeprefix("whsec_"))
signed = ident.encode() + b"." + timestamp.encode() + b"." + body
expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
given = [part[3:] for part in signature.split(" ") if part.startswith("v1,")]
sys.exit(0 if any(hmac.compare_digest(expected, one) for one in given) else 1)
"#;

    fn verifies(body: &str, args: [&str; 4]) -> bool {
        let mut python = Command::new("python3");
        let mut child =
            python.arg("-c").arg(VERIFY).args(args).stdin(Stdio::piped()).spawn().expect("python3");
        child.stdin.take().expect("stdin").write_all(body.as_bytes()).expect("to write");
        child.wait().expect("its end").success()
    }

    #[test]
    fn messages_are_signed_as_standard_webhooks_says() {
        let receiver = Receiver::answering(&["204 No Content"]);
        let server = posting(&format!("http://{}/hooks?x=1", receiver.addr), inside("127.0.0.1"));
        let alert = rung(&server, "open", "no_worker");
        let call = eventually("a message", || receiver.calls().pop());
        assert_eq!(call.line, "POST /hooks?x=1 HTTP/1.1");
        assert_eq!(
            (call.header("host"), call.header("content-type")),
            (&*receiver.addr.to_string(), "application/json")
        );
        let (id, at) = (call.header("webhook-id"), call.header("webhook-timestamp"));
        let message: Value = serde_json::from_str(&call.body).expect("JSON");
        assert_eq!((&message["id"], &message["type"]), (&json!(id), &json!("alert.opened")));
        assert_eq!((&message["data"]["id"], &message["data"]["detail"]), (&alert["id"], &alert["detail"]));
        let signature = call.header("webhook-signature");
        assert!(verifies(&call.body, [SECRET, id, at, signature]));
        // It signs all three.
        assert!(!verifies(&format!("{} ", call.body), [SECRET, id, at, signature]));
        assert!(!verifies(&call.body, [SECRET, "other", at, signature]));
        assert!(!verifies(&call.body, [SECRET, id, "1", signature]));

        take(&mut server.client(), "w", "q").complete(&mut server.client());
        rung(&server, "closed", "no_worker");
        eventually("the closing", || (receiver.calls().len() == 2).then_some(()));
        let closing: Value = serde_json::from_str(&receiver.calls()[1].body).expect("JSON");
        assert_eq!(closing["type"], "alert.closed");
        eventually("both count as delivered", || (messages(&server, "delivered") >= 2.0).then_some(()));
        assert_eq!(receiver.calls().len(), 2);
    }
}

/// The same message comes again, with the same id, until it is taken.
#[test]
fn a_message_that_is_not_taken_comes_again() {
    let receiver = Receiver::answering(&["503 Service Unavailable", "200 OK"]);
    let server = posting(&format!("http://{}/", receiver.addr), inside("127.0.0.1"));
    eventually("it came twice", || (receiver.calls().len() == 2).then_some(()));
    let calls = receiver.calls();
    assert_eq!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    assert_eq!(calls[0].body, calls[1].body);
    eventually("it is delivered", || (messages(&server, "delivered") >= 1.0).then_some(()));
    assert!((messages(&server, "failed") - 1.0).abs() < f64::EPSILON);
}

/// Over TLS to whom the system's authorities vouch for, and to nobody else.
#[test]
fn messages_go_over_tls_to_whom_somebody_vouches_for() {
    let (receiver, certificate) = Receiver::encrypted(&["200 OK"]);
    let url = format!("https://localhost:{}/hook", receiver.addr.port());
    let stranger = posting(&url, inside("localhost"));
    failed(&stranger);
    assert!(stranger.log().contains("certificate"), "{}", stranger.log());
    assert!(receiver.calls().is_empty());

    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("authorities.pem");
    std::fs::write(&file, certificate).expect("a file");
    let trusting = inside("localhost").env("SSL_CERT_FILE", file.to_str().expect("a path"));
    let server = posting(&url, trusting);
    eventually("it is delivered", || (messages(&server, "delivered") >= 1.0).then_some(()));
    assert_eq!(receiver.calls()[0].line, "POST /hook HTTP/1.1");
}

/// Loopback by its address: told at the start, refused at each message, and nobody is connected to.
#[test]
fn f114_loopback_by_its_address_is_refused() {
    let receiver = Receiver::answering(&["200 OK"]);
    let server = posting(&format!("http://{}/", receiver.addr), quick());
    assert!(server.log().contains("names an address to which nothing will be sent"), "{}", server.log());
    failed(&server);
    assert!(server.log().contains("internal address 127.0.0.1"), "{}", server.log());
    take(&mut server.client(), "w", "q").complete(&mut server.client());
    assert!(receiver.calls().is_empty());
}

/// Loopback by a name that DNS (or the system's list of hosts) gives that address.
#[test]
fn f114_loopback_by_a_name_is_refused() {
    let receiver = Receiver::answering(&["200 OK"]);
    let server = posting(&format!("http://localhost:{}/", receiver.addr.port()), quick());
    failed(&server);
    assert!(server.log().contains("localhost is the internal address"), "{}", server.log());
    assert!(receiver.calls().is_empty());
}

/// The metadata of clouds.
#[test]
fn f114_a_link_local_address_is_refused() {
    let server = posting("http://169.254.169.254/latest/meta-data/", quick());
    failed(&server);
    assert!(server.log().contains("internal address 169.254.169.254"), "{}", server.log());
}

/// The address was looked at and the client then followed an answer to where it may not go.
#[test]
fn f113_redirects_are_not_followed_and_count_as_failed() {
    let inner = Receiver::answering(&["200 OK"]);
    for status in ["302 Found", "307 Temporary Redirect"] {
        let answer = format!("{status}\r\nlocation: http://127.0.0.2:{}/", inner.addr.port());
        let receiver = Receiver::answering(&[&answer]);
        let server = posting(&format!("http://{}/", receiver.addr), inside("127.0.0.1"));
        failed(&server);
        assert!(server.log().contains("redirects are not followed"), "{}", server.log());
        assert_eq!((receiver.calls().len(), inner.calls().len()), (1, 0));
    }
}

/// Nobody answers: the queue works, and the other way is told.
#[test]
fn a_receiver_that_does_not_answer_blocks_nothing() {
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/SECRET-PATH", silent.local_addr().expect("its address"));
    let options = super::writes_down(inside("127.0.0.1").set("alerts.webhook_timeout=0.3s"));
    let server = posting(&url, options);
    rung(&server, "open", "no_worker");
    eventually("the command was told", || super::told(&server).pop());
    take(&mut server.client(), "w", "q").complete(&mut server.client());
    rung(&server, "closed", "no_worker");
    failed(&server);
    assert!(server.log().contains("no answer within 0.3 s"), "{}", server.log());
    assert!(!server.log().contains("SECRET-PATH") && !server.log().contains("whsec"), "{}", server.log());
}

#[test]
fn the_heartbeat_comes_while_the_server_works() {
    let receiver = Receiver::answering(&["200 OK"]);
    let url = format!("alerts.heartbeat_url=http://{}/beat", receiver.addr);
    let server = Server::with(inside("127.0.0.1").set(&url).set("alerts.heartbeat_every=1s"));
    eventually("two beats", || (receiver.calls().len() >= 2).then_some(()));
    assert_eq!(receiver.calls()[0].line, "GET /beat HTTP/1.1");
    drop(server);
}

/// The heartbeat goes through the same guard.
#[test]
fn f114_the_heartbeat_is_refused_inside_too() {
    let receiver = Receiver::answering(&["200 OK"]);
    let url = format!("alerts.heartbeat_url=http://{}/beat", receiver.addr);
    let server = Server::with(quick().set(&url).set("alerts.heartbeat_every=1s"));
    eventually("it is told", || server.log().contains("the heartbeat did not come through").then_some(()));
    assert!(server.log().contains("internal address 127.0.0.1"), "{}", server.log());
    assert!(receiver.calls().is_empty());
}

#[test]
fn settings_that_cannot_work_are_refused_and_secrets_are_not_shown() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = |settings: &[&str]| {
        let mut command = tagwerk(dir.path(), &["config"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let output = command.output().expect("an answer");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let hook = "alerts.webhook=https://hooks.example.org/services/GEHEIM";
    let secret = format!("alerts.webhook_secret={SECRET}");
    let (ok, shown, _) = config(&[hook, &secret]);
    assert!(ok && shown.contains("https://hooks.example.org/***"), "{shown}");
    assert!(!shown.contains("GEHEIM") && !shown.contains("MfKQ9r8"), "{shown}");
    for (settings, why) in [
        (vec![hook], "alerts.webhook needs it"),
        (vec![hook, "alerts.webhook_secret=GEHEIM"], "must be whsec_"),
        (vec!["alerts.webhook=hooks.example.org/GEHEIM"], "must be a URL"),
        (vec!["alerts.heartbeat_url=https://me:GEHEIM@example.org/"], "without a user"),
        (vec!["alerts.no_worker=never"], "off"),
        (vec!["alerts.failure_rate=20"], "between 0.01 and 1"),
        (vec!["alerts.rules=mail no_worker=1m"], "queue:NAME"),
        (vec!["alerts.no_workers=1m"], "did you mean alerts.no_worker?"),
    ] {
        let (ok, _, error) = config(&settings);
        assert!(!ok && error.contains(why) && !error.contains("GEHEIM"), "{settings:?}: {error}");
    }
}
