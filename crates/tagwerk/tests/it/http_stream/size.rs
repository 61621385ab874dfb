//! Memory does not grow with the stream.

use std::fmt::Write as _;
use std::io::Write as _;

use super::*;

/// What the server may have at most, whatever the length of the stream.
const MOST_KIB: u64 = 150 * 1024;

/// A broken line every so many lines of a piece, in its middle.
const PIECE_LINES: usize = 10_000;

#[test]
fn many_jobs_go_through_one_request_in_bounded_memory() {
    let lines: usize =
        std::env::var("TAGWERK_STREAM_LINES").map_or(60_000, |text| text.parse().expect("a number"));
    let server = Server::start();
    let mut client = begin(&server, "");
    let broken = lines / 2;
    let mut number = 0;
    while number < lines {
        let mut piece = String::new();
        for _ in 0..PIECE_LINES.min(lines - number) {
            number += 1;
            let key =
                if number % 2 == 0 { format!(",\"idempotency_key\":\"k{number}\"") } else { String::new() };
            let end = if number == broken { "" } else { "}" };
            writeln!(piece, "{{\"type\":\"t\",\"payload\":\"{}\"{key}{end}", "x".repeat(148))
                .expect("memory");
        }
        let framed = format!("{:x}\r\n{piece}\r\n", piece.len());
        client.stream().expect("a connection").get_mut().write_all(framed.as_bytes()).expect("to send");
    }
    let answers = end(&mut client);
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(line_and_code(&answers[0]), (broken as u64, "invalid-json"));
    assert_eq!(answers[1], json!({"done": true, "created": lines - 1, "existing": 0, "refused": 1}));
    assert_eq!(enqueued(&server), i64::try_from(lines - 1).expect("small"));
    let peak = server.memory_kib();
    println!("{lines} lines: the server's memory was {} MiB at most", peak / 1024);
    assert!(peak < MOST_KIB, "{peak} KiB");
}
