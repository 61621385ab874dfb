//! The last that passes and the first that does not, for every limit of a stream.

use serde_json::json;
use tagwerk_core::limits;

use super::*;
use crate::server::Options;

/// A job of exactly so many bytes, by white space.
fn padded(bytes: usize) -> String {
    let job = "{\"type\":\"t\"";
    format!("{job}{}}}", " ".repeat(bytes - job.len() - 1))
}

#[test]
fn the_longest_line_passes_and_one_byte_more_is_refused_alone() {
    let server = Server::with(Options::default().set("payload.max_bytes=1000"));
    let most = 1_000 + limits::STREAM_LINE_EXTRA_BYTES;
    let text = [padded(most), padded(most + 1), padded(4 * most), padded(most)].join("\n");
    let answers = send(&server, "", text.as_bytes());
    assert_eq!(answers.len(), 3, "{answers:?}");
    for (answer, line) in answers.iter().zip([2, 3]) {
        assert_eq!((answer["status"].as_u64(), line_and_code(answer)), (Some(413), (line, "body-too-large")));
        assert!(answer["problem"]["detail"].as_str().expect("a text").contains(&most.to_string()));
    }
    assert_eq!(answers[2], json!({"done": true, "created": 2, "existing": 0, "refused": 2}));
}

#[test]
fn the_largest_payload_passes_and_one_byte_more_is_refused_alone() {
    let server = Server::start();
    let job = |bytes: usize| format!("{{\"type\":\"t\",\"payload\":\"{}\"}}\n", "x".repeat(bytes - 2));
    let text = [job(limits::PAYLOAD_MAX_BYTES), job(limits::PAYLOAD_MAX_BYTES + 1), job(10)].concat();
    let answers = send(&server, "", text.as_bytes());
    assert_eq!(line_and_code(&answers[0]), (2, "payload-too-large"));
    assert_eq!(answers[1], json!({"done": true, "created": 2, "existing": 0, "refused": 1}));
    // More than a batch may hold, in the order of the lines.
    let many: String = (0..12).map(|_| job(limits::PAYLOAD_MAX_BYTES)).collect();
    let answers = send(&server, "?results=all", many.as_bytes());
    let ids: Vec<_> = answers.iter().filter_map(|answer| answer["id"].as_i64()).collect();
    assert_eq!(ids, (3..15).collect::<Vec<_>>());
}

#[test]
fn a_thousand_refused_lines_are_named_and_the_others_counted() {
    let server = Server::start();
    for (refused, named) in [(1_000, 1_000), (1_001, 1_000)] {
        let answers = send(&server, "", "x\n".repeat(refused).as_bytes());
        assert_eq!(answers.len(), named + 1);
        assert_eq!(answers[named - 1]["line"], named);
        assert_eq!(answers[named]["refused"], refused);
        let all = send(&server, "?results=all", "x\n".repeat(refused).as_bytes());
        assert_eq!(all.len(), refused + 1);
    }
}

#[test]
fn what_is_named_has_a_bounded_size() {
    let server = Server::start();
    // Each of these fields is an error of its own.
    let line = |fields: usize| {
        let names: Vec<String> = (0..fields).map(|n| format!("\"{}{n}\":1", "unknown".repeat(8))).collect();
        format!("{{\"type\":\"t\",{}}}\n", names.join(","))
    };
    for (fields, named) in [(10, limits::STREAM_LINE_ERRORS_MAX), (11, limits::STREAM_LINE_ERRORS_MAX)] {
        let answers = send(&server, "", line(fields).as_bytes());
        assert_eq!(answers[0]["problem"]["errors"].as_array().expect("errors").len(), named);
    }
    let answer = server.client().send("POST /jobs/bulk", &[NDJSON], line(11).repeat(1_000).as_bytes());
    let lines = lines_of(&answer);
    assert_eq!(lines[lines.len() - 1]["refused"], 1_000, "all are counted");
    let one = answer.text().lines().next().expect("a line").len();
    // The line that reaches the bound is the last one that is named.
    let most = limits::STREAM_REFUSALS_MAX_BYTES;
    assert!(answer.body.len() > most && answer.body.len() < most + one + 100, "{} {one}", answer.body.len());
}

#[test]
fn batches_end_at_their_lines_and_the_order_stays() {
    let server = Server::start();
    let lines = 2 * limits::STREAM_BATCH_LINES + 1;
    let jobs: Vec<String> = (1..=lines).map(|n| format!("{{\"type\":\"t\",\"payload\":{n}}}\n")).collect();
    let text = jobs.concat();
    let answers = send(&server, "?results=all", text.as_bytes());
    let numbers: Vec<_> = answers.iter().map(|answer| (&answer["line"], &answer["id"])).collect();
    for (index, (line, id)) in numbers[..lines].iter().enumerate() {
        assert_eq!((*line, *id), (&json!(index + 1), &json!(index + 1)));
    }
    for id in [1, limits::STREAM_BATCH_LINES, limits::STREAM_BATCH_LINES + 1, lines] {
        assert_eq!(server.get(&format!("/jobs/{id}")).expect(200)["payload"], id);
    }
}

#[test]
fn further_streams_wait_for_their_turn_and_are_then_refused() {
    let server = Server::start();
    let mut open: Vec<_> = (0..limits::STREAMED_ENQUEUES_MAX).map(|_| begin(&server, "")).collect();
    for (n, client) in open.iter_mut().enumerate() {
        chunk(client, b"{\"type\":\"t\"}\n");
        while enqueued(&server) <= i64::try_from(n).expect("small") {}
    }
    let mut one_more = begin(&server, "");
    chunk(&mut one_more, b"{\"type\":\"t\"}\n");
    one_more.finish("POST").expect("an answer").problem(503, "overloaded");
    // Single calls have their own way.
    server.post("/jobs", &json!({"type": "t"})).expect(201);
    let mut waits = begin(&server, "");
    chunk(&mut waits, b"{\"type\":\"t\"}\n");
    for client in &mut open {
        let last = end(client).pop().expect("a last line");
        // Those that were begun first have been silent for long; whatever they are told, their turn is free.
        assert_eq!(last["created"], 1, "{last}");
    }
    assert_eq!(end(&mut waits).pop().expect("a last line")["created"], 1);
}
