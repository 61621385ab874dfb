//! `POST /jobs/bulk` as a stream of lines.
//!
//! How much goes through one request is set by `TAGWERK_STREAM_LINES`; the full size with the server as users get it:
//! `TAGWERK_STREAM_LINES=1000000 cargo test --release -p tagwerk --test it http_stream::size`

mod edges;
mod ends;
mod size;

use std::io::{BufRead as _, Read as _};

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::Server;
use crate::support::dice::Dice;

/// The header of a stream.
const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");

/// A whole stream in one piece.
fn send(server: &Server, query: &str, lines: &[u8]) -> Vec<Value> {
    lines_of(&server.client().send(&format!("POST /jobs/bulk{query}"), &[NDJSON], lines))
}

/// The lines of an answer.
fn lines_of(answer: &Answer) -> Vec<Value> {
    answer.status_is(200);
    assert_eq!(answer.header("content-type"), Some(NDJSON.1), "{answer:?}");
    answer.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Begins a stream whose length nobody knows.
fn begin(server: &Server, query: &str) -> Client {
    let mut client = server.client();
    let head = format!(
        "POST /jobs/bulk{query} HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.addr(),
        NDJSON.1
    );
    client.begin(head.as_bytes()).expect("to send");
    client
}

/// Sends a part of it.
fn chunk(client: &mut Client, bytes: &[u8]) {
    let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    client.begin(&framed).expect("to send");
}

/// Ends it and reads the answer.
fn end(client: &mut Client) -> Vec<Value> {
    client.begin(b"0\r\n\r\n").expect("to send");
    lines_of(&client.finish("POST").expect("an answer"))
}

/// Reads the answer line by line while it comes.
struct Answers {
    text: String,
    has_head: bool,
}

impl Answers {
    const fn new() -> Self {
        Self { text: String::new(), has_head: false }
    }

    fn next(&mut self, client: &mut Client) -> Value {
        let stream = client.stream().expect("a connection");
        let mut line = String::new();
        while !self.has_head {
            line.clear();
            stream.read_line(&mut line).expect("the head");
            assert!(!line.is_empty(), "the connection has ended");
            self.has_head = line == "\r\n";
        }
        loop {
            if let Some((first, rest)) = self.text.split_once('\n') {
                let value = serde_json::from_str(first).expect("JSON");
                self.text = rest.to_owned();
                return value;
            }
            line.clear();
            stream.read_line(&mut line).expect("a size");
            let size = usize::from_str_radix(line.trim(), 16).expect("a size");
            let mut bytes = vec![0; size + 2];
            stream.read_exact(&mut bytes).expect("a piece");
            self.text += std::str::from_utf8(&bytes[..size]).expect("UTF-8");
        }
    }
}

/// Jobs that the store has taken in.
fn enqueued(server: &Server) -> i64 {
    server.get("/stats").expect(200)["counts"]["enqueued"].as_i64().expect("a number")
}

fn line_and_code(answer: &Value) -> (u64, &str) {
    (answer["line"].as_u64().expect("a line"), answer["problem"]["code"].as_str().unwrap_or_default())
}

#[test]
fn lines_are_judged_by_themselves_and_named_by_their_numbers() {
    let server = Server::start();
    let text = b"{\"type\":\"t\",\"payload\": {\"n\":1e400} }\n\n \t\r\n{\"type\":\"t\",\"max_retry\":1}\r\n\
                 {\"type\":\"t\",\"idempotency_key\":\"a\"}\r\n{\"type\":\"\xff\"}\n\xef\xbb\xbf{\"type\":\"t\"}\n\
                 [1]\n{\"type\":\"t\"} {}\n{\"type\":\"t\",\"idempotency_key\":\"a\"}\n{}\n{\"type\":\"last\"}";
    let answers = send(&server, "", text);
    let (last, refused) = answers.split_last().expect("lines");
    assert_eq!(*last, json!({"done": true, "created": 3, "existing": 1, "refused": 6}));
    let refused: Vec<_> = refused
        .iter()
        .map(|answer| {
            assert_eq!(answer["status"], answer["problem"]["status"]);
            assert_eq!(answer.as_object().expect("an object").len(), 3, "{answer}");
            line_and_code(answer)
        })
        .collect();
    let (json, request) = ("invalid-json", "invalid-request");
    assert_eq!(refused, [(4, request), (6, json), (7, json), (8, request), (9, json), (11, request)]);
    let payload = server.get("/jobs/1").text().contains(r#""payload":{"n":1e400}"#);
    assert!(payload, "kept byte for byte");
    assert_eq!(server.get("/jobs/3").expect(200)["type"], "last");
    assert_eq!(send(&server, "", b""), [json!({"done": true, "created": 0, "existing": 0, "refused": 0})]);
    assert_eq!(
        send(&server, "", b"\n\n"),
        [json!({"done": true, "created": 0, "existing": 0, "refused": 0})]
    );
}

#[test]
fn what_is_wrong_with_the_whole_is_said_before_anything_is_stored() {
    let server = Server::start();
    let line = b"{\"type\":\"t\"}\n";
    let with = |call: &str, more: (&str, &str)| server.client().send(call, &[NDJSON, more], line);
    let bulk = "POST /jobs/bulk";
    let problem = with(bulk, ("Content-Encoding", "gzip")).problem(415, "unsupported-media-type");
    assert!(problem["detail"].as_str().expect("a text").contains("Content-Encoding"));
    let problem = with(bulk, ("Idempotency-Key", "k")).problem(422, "invalid-request");
    assert_eq!(problem["errors"][0]["field"], "Idempotency-Key");
    for query in ["?result=all", "?results=some", "?atomic=true"] {
        with(&format!("{bulk}{query}"), ("Accept", "*/*")).problem(422, "invalid-request");
    }
    let json = server.client().send(
        "POST /jobs/bulk?results=all",
        &[("Content-Type", "application/json")],
        b"{\"jobs\":[]}",
    );
    json.problem(422, "invalid-request");
    assert_eq!(enqueued(&server), 0);
    assert_eq!(with(bulk, ("Content-Encoding", "identity")).status, 200);
    assert_eq!(enqueued(&server), 1);
}

/// The same calls one by one and in one stream: each line is judged as a call of its own would be.
#[test]
fn repeated_keys_are_judged_as_by_calls_of_their_own() {
    let (single, streamed) = (Server::start(), Server::start());
    let mut dice = Dice::new(7, 0);
    let mut pick = |values: &[&Value]| (*dice.pick(values)).clone();
    let (none, one, two) = (&Value::Null, &json!(1), &json!(2));
    let jobs: Vec<Value> = (0..1_200)
        .map(|_| {
            json!({
                "type": "t",
                "payload": pick(&[one, two]),
                "idempotency_key": pick(&[none, &json!("a"), &json!("b"), &json!("c"), &json!("d")]),
                "on_duplicate": pick(&[none, none, none, &json!("replace"), &json!("conflict")]),
                "on_mismatch": pick(&[none, none, &json!("reject")]),
            })
        })
        .collect();
    let mut client = single.client();
    let expected: Vec<Value> = jobs
        .iter()
        .map(|job| {
            let answer = client.post("/jobs", job);
            let body = answer.json();
            match body["code"].as_str() {
                Some(code) => json!([answer.status, code]),
                None => json!([answer.status, body["id"], body["payload_differs"], body["replaced"]]),
            }
        })
        .collect();
    let text = jobs.iter().map(|job| format!("{job}\n")).collect::<Vec<_>>().concat();
    let answers = send(&streamed, "?results=all", text.as_bytes());
    assert_eq!(answers.len(), jobs.len() + 1);
    for (index, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
        assert_eq!(answer["line"], index + 1);
        let got = match answer["problem"]["code"].as_str() {
            Some(code) => json!([answer["status"], code]),
            None => json!([answer["status"], answer["id"], answer["payload_differs"], answer["replaced"]]),
        };
        assert_eq!(got, *expected, "line {}: {}", index + 1, jobs[index]);
    }
    let ids: Vec<_> =
        answers.iter().filter(|answer| answer["status"] == 201).map(|answer| answer["id"].as_i64()).collect();
    assert!(ids.is_sorted() && ids.len() > 200, "{}", ids.len());
}

#[test]
fn with_all_results_a_client_that_reads_gets_one_line_per_line() {
    let server = Server::start();
    let mut client = begin(&server, "?results=all");
    let mut answers = Answers::new();
    for line in 1..=3 {
        chunk(&mut client, b"{\"type\":\"t\"}\n");
        let answer = answers.next(&mut client);
        assert_eq!(
            answer,
            json!({"line": line, "status": 201, "id": line, "payload_differs": false, "replaced": null})
        );
        assert_eq!(enqueued(&server), line, "answered when it is stored");
    }
    chunk(&mut client, b"nonsense\n{\"type\":");
    assert_eq!(line_and_code(&answers.next(&mut client)), (4, "invalid-json"));
    chunk(&mut client, b"\"late\"}");
    client.begin(b"0\r\n\r\n").expect("to send");
    assert_eq!(answers.next(&mut client)["id"], 4);
    assert_eq!(answers.next(&mut client), json!({"done": true, "created": 4, "existing": 0, "refused": 1}));
}

/// Other clients get their share while a stream is under way.
#[test]
fn a_long_stream_keeps_nobody_waiting() {
    let server = Server::start();
    let text = "{\"type\":\"bulk\",\"payload\":\"0123456789\"}\n".repeat(40_000);
    let addr = server.addr();
    let streaming = std::thread::spawn(move || {
        let mut client = Client::new(addr);
        lines_of(&client.send("POST /jobs/bulk", &[NDJSON], text.as_bytes())).pop().expect("a last line")
    });
    let mut client = server.client();
    while enqueued(&server) == 0 {}
    let mut rounds = 0;
    while !streaming.is_finished() {
        client.post("/jobs", &json!({"type": "single"})).expect(201);
        let job = client.post("/jobs/claim", &json!({"worker_id": "w", "types": ["single"]})).expect(200);
        let report = json!({"lease": job["lease"]});
        client.post(&format!("/jobs/{}/complete", job["id"]), &report).expect(200);
        rounds += 1;
    }
    assert_eq!(streaming.join().expect("an answer")["created"], 40_000);
    // 80 batches or more: each of the three calls of a round waits for one or two of them.
    assert!(rounds >= 8, "only {rounds} rounds of three calls in the time of the stream");
}

mod needs_curl {
    use std::process::Command;

    use super::*;

    #[test]
    fn http_2_without_tls_streams_too() {
        let server = Server::start();
        let file = server.dir().join("jobs.ndjson");
        let mut text = "{\"type\":\"t\"}\n".repeat(3_000);
        text.insert_str(13 * 1_499, "{\"typ\":\"t\"}\n");
        std::fs::write(&file, text).expect("a file");
        for query in ["", "?results=all"] {
            let output = Command::new("curl")
                .args(["-sS", "--http2-prior-knowledge", "-H", "Content-Type: application/x-ndjson", "-T"])
                .arg(&file)
                .args([
                    "-X",
                    "POST",
                    "-w",
                    "%{http_version} %{http_code}",
                    &format!("{}/jobs/bulk{query}", server.url()),
                ])
                .output()
                .expect("curl");
            let said = String::from_utf8(output.stdout.clone()).expect("UTF-8");
            let lines: Vec<&str> = said.lines().collect();
            let all = usize::from(!query.is_empty());
            assert_eq!(lines.len(), 3 + 3_000 * all, "{output:?}");
            assert_eq!(lines[lines.len() - 1], "2 200");
            let last: Value = serde_json::from_str(lines[lines.len() - 2]).expect("JSON");
            assert_eq!(last, json!({"done": true, "created": 3_000, "existing": 0, "refused": 1}));
            let refused: Value = serde_json::from_str(lines[1_499 * all]).expect("JSON");
            assert_eq!(line_and_code(&refused), (1_500, "invalid-request"));
        }
        assert_eq!(enqueued(&server), 6_000);
    }

    /// It asks to be told to go on before it sends a large body.
    #[test]
    fn a_client_that_waits_to_be_told_to_go_on_is_told() {
        let server = Server::start();
        let file = server.dir().join("jobs.ndjson");
        std::fs::write(&file, "{\"type\":\"t\"}\n".repeat(2_000)).expect("a file");
        for query in ["", "?results=all"] {
            let output = Command::new("curl")
                .args(["-sS", "-H", "Content-Type: application/x-ndjson", "-H", "Expect: 100-continue"])
                .args(["--expect100-timeout", "60", "--max-time", "50", "-T"])
                .arg(&file)
                .args(["-X", "POST", &format!("{}/jobs/bulk{query}", server.url())])
                .output()
                .expect("curl");
            let said = String::from_utf8(output.stdout.clone()).expect("UTF-8");
            assert!(
                said.ends_with("{\"done\":true,\"created\":2000,\"existing\":0,\"refused\":0}\n"),
                "{output:?}"
            );
        }
    }
}
