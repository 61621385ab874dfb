//! A server on a port of its own that answers each connection by script and notes what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tagwerk_client::{Client, Retries};

/// What the server does with one connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Reads the request and answers: status, further header lines, body.
    Answer(u16, &'static str, String),
    /// Reads the request and hangs up.
    HangUp,
    /// Reads the request and says nothing until the client hangs up.
    Silence,
}

/// What the client asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// `POST /jobs`
    pub(crate) line: String,
    /// Header lines, lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The server.
pub(crate) struct Script {
    url: String,
    asked: Receiver<Asked>,
    thread: JoinHandle<()>,
}

pub(crate) fn json(body: &str) -> Step {
    Step::Answer(200, "Content-Type: application/json\r\n", body.to_owned())
}

pub(crate) fn problem(code: tagwerk_client::api::problem::Code, head: &'static str) -> Step {
    let problem = tagwerk_client::api::problem::Problem::of(code);
    Step::Answer(problem.status, head, serde_json::to_string(&problem).unwrap())
}

impl Script {
    pub(crate) fn run(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        let thread = std::thread::spawn(move || {
            for step in steps {
                let (stream, _) = listener.accept().unwrap();
                sender.send(answer(stream, step)).unwrap();
            }
        });
        Self { url, asked, thread }
    }

    /// A client with short waits.
    pub(crate) fn client(&self) -> Client {
        let first = Duration::from_millis(1);
        Client::builder(self.url.parse().unwrap())
            .retries(Retries { tries: 4, first, cap: first, seed: 7 })
            .timeout(Duration::from_secs(5))
            .build()
            .unwrap()
    }

    /// Everything that was asked. All steps must have been used.
    pub(crate) fn asked(self) -> Vec<Asked> {
        self.thread.join().unwrap();
        self.asked.iter().collect()
    }
}

fn answer(mut stream: TcpStream, step: Step) -> Asked {
    let asked = read(&stream);
    match step {
        Step::Answer(status, head, body) => {
            let length = body.len();
            let kind = match status {
                200..300 => "",
                _ if head.to_ascii_lowercase().contains("content-type") => "",
                _ => "Content-Type: application/problem+json\r\n",
            };
            let head = format!(
                "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {length}\r\n{kind}{head}\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
        }
        Step::HangUp => {}
        Step::Silence => {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
        }
    }
    asked
}

fn read(stream: &TcpStream) -> Asked {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut head = String::new();
    loop {
        let mut next = String::new();
        reader.read_line(&mut next).unwrap();
        if next.trim().is_empty() {
            break;
        }
        head.push_str(&next.to_ascii_lowercase());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    Asked { line, head, body: String::from_utf8(body).unwrap() }
}
