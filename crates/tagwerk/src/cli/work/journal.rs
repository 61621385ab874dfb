//! The worker's stderr: one line a job, notes, and what commands write there. Written by a task of its own, so that a stderr
//! that nobody reads holds up no heartbeat.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

/// Pieces of text that may wait to be written, a few MiB. Beyond that, commands wait, and notes are dropped.
const WAITING_PIECES: usize = 250;

/// How long a line, and the end of the worker, waits for a stderr that nobody reads.
const CLOSING: Duration = Duration::from_secs(1);

/// Longer lines of commands are passed on in pieces.
const PIECE_BYTES: usize = 8 * 1024;

/// Where lines are given.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    sender: Sender<Vec<u8>>,
    form: Form,
}

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `name=value`
    Text,
    /// One JSON object a line.
    Json,
}

/// The task that writes.
#[derive(Debug)]
pub(super) struct Writing(JoinHandle<()>);

/// What is said of one job.
#[derive(Debug, Default)]
pub(super) struct Entry<'a> {
    pub(super) job: i64,
    pub(super) job_type: &'a str,
    pub(super) attempt: u32,
    pub(super) outcome: &'a str,
    /// Class of a failure, code of a refusal.
    pub(super) detail: Option<String>,
    /// Where the job stands after it.
    pub(super) status: Option<&'a str>,
    pub(super) ms: u128,
}

impl Journal {
    pub(super) fn open(form: Form) -> (Self, Writing) {
        let (sender, receiver) = channel(WAITING_PIECES);
        (Self { sender, form }, Writing(tokio::spawn(write(receiver))))
    }

    /// The line about a job.
    pub(super) async fn entry(&self, entry: &Entry<'_>) {
        let line = match self.form {
            Form::Json => entry.json(),
            Form::Text => entry.text(),
        };
        self.line(line).await;
    }

    /// A word to the operator. Never waits.
    pub(super) fn note(&self, text: &str) {
        let line = match self.form {
            Form::Json => serde_json::json!({"note": text}).to_string(),
            Form::Text => format!("tagwerk work: {text}"),
        };
        drop(self.sender.try_send([line.as_bytes(), b"\n"].concat()));
    }

    async fn line(&self, line: String) {
        // A stderr that nobody reads must not keep a slot from its next job, or the worker from its end.
        drop(tokio::time::timeout(CLOSING, self.sender.send([line.as_bytes(), b"\n"].concat())).await);
    }

    /// What a command writes to its stderr.
    pub(super) fn pass_on(&self, job: i64) -> PassOn {
        PassOn { journal: self.clone(), prefix: format!("[job {job}] "), rest: Vec::new() }
    }
}

impl Writing {
    /// Waits until everything is written, but not for ever.
    pub(super) async fn close(self) {
        drop(tokio::time::timeout(CLOSING, self.0).await);
    }
}

async fn write(mut lines: Receiver<Vec<u8>>) {
    let mut stderr = tokio::io::stderr();
    while let Some(line) = lines.recv().await {
        // A stderr that is closed ends no worker.
        if stderr.write_all(&line).await.is_ok() {
            drop(stderr.flush().await);
        }
    }
}

impl Entry<'_> {
    fn text(&self) -> String {
        let Self { job, job_type, attempt, outcome, ms, .. } = self;
        let optional = [("detail", self.detail.as_deref()), ("status", self.status)];
        let optional: Vec<_> = optional
            .iter()
            .filter_map(|(name, value)| Some(format!(" {name}={}", word((*value)?))))
            .collect();
        let optional = optional.concat();
        format!("job={job} type={} attempt={attempt} outcome={outcome}{optional} ms={ms}", word(job_type))
    }

    fn json(&self) -> String {
        let Self { job, job_type, attempt, outcome, detail, status, ms } = self;
        let ms = u64::try_from(*ms).unwrap_or(u64::MAX);
        serde_json::json!({
            "job": job, "type": job_type, "attempt": attempt, "outcome": outcome, "detail": detail, "status": status, "ms": ms,
        })
        .to_string()
    }
}

/// A word as it is, other text in quotation marks.
fn word(text: &str) -> String {
    let is_plain =
        |letter: char| !letter.is_whitespace() && !letter.is_control() && !"\"=\\".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { format!("{text:?}") }
}

/// Passes a command's lines on, each with its job.
pub(super) struct PassOn {
    journal: Journal,
    prefix: String,
    rest: Vec<u8>,
}

impl PassOn {
    /// The next piece. Waits when the journal is full.
    pub(super) async fn take(&mut self, bytes: &[u8]) {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.rest.len() >= PIECE_BYTES {
                self.end_line(&mut lines);
            }
        }
        self.send(lines).await;
    }

    /// What has no line end yet.
    pub(super) async fn flush(&mut self) {
        let mut lines = Vec::new();
        if !self.rest.is_empty() {
            self.end_line(&mut lines);
        }
        self.send(lines).await;
    }

    fn end_line(&mut self, lines: &mut Vec<u8>) {
        lines.extend_from_slice(self.prefix.as_bytes());
        lines.append(&mut self.rest);
        if !lines.ends_with(b"\n") {
            lines.push(b'\n');
        }
    }

    async fn send(&self, lines: Vec<u8>) {
        if !lines.is_empty() {
            drop(self.journal.sender.send(lines).await);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_a_job_can_be_read_by_programs() {
        let entry = Entry {
            job: 7,
            job_type: "send mail",
            attempt: 2,
            outcome: "failed",
            ms: 12,
            ..Entry::default()
        };
        let full = Entry { detail: Some("transient".to_owned()), status: Some("pending"), ..entry };
        assert_eq!(
            full.text(),
            "job=7 type=\"send mail\" attempt=2 outcome=failed detail=transient status=pending ms=12"
        );
        let json: serde_json::Value = serde_json::from_str(&full.json()).unwrap();
        assert_eq!((&json["job"], &json["ms"]), (&7.into(), &12.into()));
        assert_eq!(word("App\\Jobs\\Mail"), "\"App\\\\Jobs\\\\Mail\"");
        assert_eq!(word("a\u{1b}[2J"), "\"a\\u{1b}[2J\"");
    }
}
