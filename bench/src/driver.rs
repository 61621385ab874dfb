//! The harness's end of the conversation with a driver: commands out, answers in, CPU times at the marks between.
//!
//! A driver is a process of its own, so that the client's processor time is its process's. All drivers, ours in Rust
//! and the peers' in JavaScript, speak the same lines; see `bench/peers/protocol.mjs`.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use crate::processes::{Process, Roster, cpu_us};

/// How much longer than its command asks for an answer may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// A driver that runs.
pub(crate) struct Driver {
    /// The process.
    pub(crate) process: Process,
    lines: Receiver<String>,
}

/// A line of a driver.
#[derive(Debug)]
enum Line {
    Ready,
    Begin,
    End,
    Done(Value),
    Absent(String),
    Failed(String),
}

impl Line {
    /// `{"done": …}` and the like: an object with one member.
    fn parse(line: &str) -> Option<Self> {
        let text = |value: Value| value.as_str().map(str::to_owned);
        let members: BTreeMap<String, Value> = serde_json::from_str(line).ok()?;
        let (name, value) = members.into_iter().next()?;
        match name.as_str() {
            "ready" => Some(Self::Ready),
            "begin" => Some(Self::Begin),
            "end" => Some(Self::End),
            "done" => Some(Self::Done(value)),
            "absent" => text(value).map(Self::Absent),
            "error" => text(value).map(Self::Failed),
            _ => None,
        }
    }
}

/// What came of a command.
pub(crate) enum Outcome {
    /// It was done.
    Done(Answer),
    /// The peer has no such call.
    Absent(String),
    /// It went wrong.
    Failed(String),
}

/// An answer, and the processor time that went by between its marks.
pub(crate) struct Answer {
    /// As the driver gave it.
    pub(crate) value: Value,
    /// Of the servers.
    pub(crate) server_us: u64,
    /// Of the driver.
    pub(crate) client_us: u64,
}

impl Driver {
    /// Starts the program and waits until it is ready.
    pub(crate) fn start(
        roster: &Roster,
        mut command: Command,
        log: &std::path::Path,
    ) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = roster.start(command, log)?;
        let stdout = process.child.stdout.take().context("a driver without stdout")?;
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| send.send(line).is_ok()) {}
        });
        let driver = Self { process, lines };
        match driver.next(PATIENCE)? {
            Line::Ready => Ok(driver),
            other => anyhow::bail!("a driver began with {other:?}"),
        }
    }

    fn next(&self, patience: Duration) -> anyhow::Result<Line> {
        let line = self.lines.recv_timeout(patience).context("the driver has ended or does not answer")?;
        Line::parse(&line).with_context(|| format!("a driver wrote `{line}`"))
    }

    /// Gives a command and waits for what comes of it. `servers` are what the driver drives.
    pub(crate) fn ask(&mut self, command: &Value, servers: &[Process]) -> anyhow::Result<Outcome> {
        let stdin = self.process.child.stdin.as_mut().context("a driver without stdin")?;
        writeln!(stdin, "{command}").and_then(|()| stdin.flush()).context("the driver has ended")?;
        let times = |driver: &Self| (cpu_us(servers), cpu_us([&driver.process]));
        let mut from = times(self);
        let mut to = None;
        let patience = PATIENCE + Duration::from_millis(command["ms"].as_u64().unwrap_or_default());
        loop {
            match self.next(patience)? {
                Line::Ready => {}
                Line::Begin => from = times(self),
                Line::End => to = Some(times(self)),
                Line::Absent(why) => return Ok(Outcome::Absent(why)),
                Line::Failed(what) => return Ok(Outcome::Failed(what)),
                Line::Done(value) => {
                    let to = to.unwrap_or_else(|| times(self));
                    let server_us = to.0.saturating_sub(from.0);
                    let client_us = to.1.saturating_sub(from.1);
                    return Ok(Outcome::Done(Answer { value, server_us, client_us }));
                }
            }
        }
    }
}
