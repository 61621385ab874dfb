//! Streams that do not come to their end, and what is told of them.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;

use serde_json::json;

use super::*;
use crate::client::request;

const JOB: &[u8] = b"{\"type\":\"t\"}\n";

/// What was sent by a client that then vanished: whole lines are in, a half one is not.
#[test]
fn a_body_that_is_cut_stores_what_was_whole() {
    let server = Server::start();
    let text = [JOB.repeat(700), b"{\"type\":\"half\"}".to_vec()].concat();
    let mut cut = begin(&server, "");
    chunk(&mut cut, &text);
    cut.close();
    while enqueued(&server) < 700 {}
    // By its length, with the end of the line on its way.
    let whole = request(server.addr(), "POST /jobs/bulk", &[NDJSON, ("Content-Length", "100000")], &text);
    let mut cut = server.client();
    cut.begin(&whole).expect("to send");
    cut.close();
    while enqueued(&server) < 1_400 {}
    // A stream that is whole comes behind them; by then they are over.
    assert_eq!(send(&server, "", JOB).pop().expect("a last line")["created"], 1);
    let halves = server.get("/jobs?type=half").expect(200);
    assert_eq!((&halves["jobs"], enqueued(&server)), (&json!([]), 1_401));
}

#[test]
fn a_half_closed_client_hears_that_its_stream_is_not_whole() {
    let server = Server::start();
    let mut client = begin(&server, "");
    chunk(&mut client, &[JOB, JOB, b"\n{\"type\":\"half\"}"].concat());
    client.stream().expect("a connection").get_mut().shutdown(Shutdown::Write).expect("to close");
    let answer = lines_of(&client.finish("POST").expect("an answer")).pop().expect("a last line");
    assert_eq!((&answer["done"], &answer["created"], &answer["line"]), (&json!(false), &json!(2), &json!(4)));
    assert_eq!(answer["problem"]["code"], "invalid-json");
    assert_eq!(enqueued(&server), 2);
}

#[test]
fn a_client_that_falls_silent_is_told_after_its_patience() {
    let server = Server::start();
    let mut client = begin(&server, "");
    chunk(&mut client, &[JOB, b"{\"type\""].concat());
    let answer = lines_of(&client.finish("POST").expect("an answer")).pop().expect("a last line");
    assert_eq!((&answer["done"], &answer["created"], &answer["line"]), (&json!(false), &json!(1), &json!(2)));
    assert_eq!(answer["problem"]["code"], "request-timeout");
}

#[test]
fn a_server_that_stops_says_at_which_line() {
    let mut server = Server::start();
    let mut client = begin(&server, "");
    chunk(&mut client, &JOB.repeat(3));
    while enqueued(&server) < 3 {}
    server.signal("TERM");
    let answer = lines_of(&client.finish("POST").expect("an answer")).pop().expect("a last line");
    let facts = [&answer["done"], &answer["created"], &answer["line"], &answer["problem"]["code"]];
    assert_eq!(facts, [&json!(false), &json!(3), &json!(4), &json!("draining")]);
    client.close();
    assert!(server.wait().0.success());
    server.start_again();
    assert_eq!(enqueued(&server), 3);
}

#[test]
fn an_error_of_the_store_is_the_last_line_and_all_before_it_is_in() {
    let server = Server::start();
    let mut client = begin(&server, "?results=all");
    let mut answers = Answers::new();
    chunk(&mut client, &JOB.repeat(600));
    for line in 1..=600 {
        assert_eq!(answers.next(&mut client)["line"], line);
    }
    let (file, aside) = (server.file(), server.dir().join("aside.db"));
    std::fs::rename(&file, &aside).expect("it moves");
    chunk(&mut client, &[b"\n", JOB].concat());
    let last = answers.next(&mut client);
    let facts = [&last["done"], &last["created"], &last["line"], &last["problem"]["code"]];
    assert_eq!(facts[..2], [&json!(false), &json!(600)]);
    // The blank line came alone or with the next.
    assert!(matches!(last["line"].as_u64(), Some(601 | 602)), "{last}");
    assert_eq!(*facts[3], "store-damaged");
    std::fs::rename(&aside, &file).expect("it comes back");
    // The server has read on; the connection is whole and takes what is left of this request.
    chunk(&mut client, &JOB.repeat(1_000));
    client.begin(b"0\r\n\r\n").expect("to send");
    assert_eq!(enqueued(&server), 600);
}

/// Its answer waits, however much there is to tell, and reading never does.
#[test]
fn a_client_that_reads_nothing_until_it_has_written_everything_is_served() {
    let server = Server::start();
    let mut client = server.client();
    let lines = 100_000;
    let mut text = "{\"type\":\"t\",\"payload\":}\n".repeat(lines / 2);
    text.push_str(&"{\"type\":\"t\"}\n".repeat(10));
    text.push_str(&"{\"type\":\"t\",\"payload\":}\n".repeat(lines / 2));
    let bytes = request(server.addr(), "POST /jobs/bulk", &[NDJSON], text.as_bytes());
    // Would block for ever if the server did.
    client.stream().expect("a connection").get_mut().write_all(&bytes).expect("to have written all");
    let answers = lines_of(&client.finish("POST").expect("an answer"));
    assert_eq!(answers.len(), 1_001);
    assert_eq!(line_and_code(&answers[999]), (1_000, "invalid-json"));
    assert_eq!(answers[1_000], json!({"done": true, "created": 10, "existing": 0, "refused": lines}));
}

/// With all results reading waits for the client, and a client that goes away instead ends the stream.
#[test]
fn a_client_that_asks_for_all_results_and_goes_away_leaves_whole_lines_behind() {
    let server = Server::start();
    let mut client = begin(&server, "?results=all");
    let stream = client.stream().expect("a connection").get_mut();
    stream.set_write_timeout(Some(std::time::Duration::from_millis(300))).expect("a time-out");
    let piece = JOB.repeat(5_000);
    let framed = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
    // Until the server has stopped reading, or far beyond what sockets hold.
    let written = (0..100).take_while(|_| stream.write_all(&framed).is_ok()).count();
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    assert!(written < 100, "the server has read everything although nobody reads its answer");
    client.close();
    // It is over for the server too: its turn is free, others are served.
    assert_eq!(send(&server, "", JOB).pop().expect("a last line")["done"], true);
}
