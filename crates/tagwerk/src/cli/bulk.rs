//! `tagwerk enqueue --bulk`: a file of jobs, one a line, in chunks through `POST /jobs/bulk`.
//!
//! A line goes out byte for byte. What is wrong with one line is said with its number, and the rest goes on. A bulk that
//! is interrupted is started again: jobs with an idempotency key are made once.

mod lines;

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tagwerk_client::api::answer::EnqueueResult;
use tagwerk_client::api::problem::{Code, Problem, Refusal};
use tagwerk_client::{Client, Error, Retries};

use super::connect::Remote;
use super::exit::Exit;
use super::failure::{Failure, Told, note, problem_text};
use super::show;
use super::values::unreadable;
use lines::{Chunk, Line, Lines};

/// Where nobody watches a bar, a line tells the progress this often.
const LINES_PER_NOTE: u64 = 10_000;

/// About two seconds: a server that was started just now is there by then.
const BEGINNING: Retries =
    Retries { tries: 6, first: Duration::from_millis(100), cap: Duration::from_secs(1), seed: 0 };

/// The command.
pub(crate) async fn run(file: &Path, remote: &Remote) -> Result<Exit, Failure> {
    let (reader, bytes) = open(file)?;
    let client = remote.patient_client()?;
    // A server that is not there at all is said soon; later on it may only be restarting.
    client.with_retries(BEGINNING).livez().await?;
    let mut bulk = Bulk { client, json: remote.json, tally: Tally::default(), bar: bar(bytes) };
    let mut lines = Lines::new(reader);
    while let Some(chunk) = lines.chunk().map_err(|error| unreadable(file, &error))? {
        bulk.take(chunk).await?;
    }
    bulk.finish()
}

/// The file and its size, if it has one.
fn open(path: &Path) -> Result<(Box<dyn BufRead>, Option<u64>), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(std::io::stdin().lock()), None));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let bytes = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|facts| facts.len());
    Ok((Box::new(BufReader::new(file)), bytes))
}

/// A bar for people who watch, or none.
fn bar(bytes: Option<u64>) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:40} {percent}%  {msg}  {elapsed}, {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner}  {msg}  {elapsed}"),
    };
    Some(
        bar.with_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        ),
    )
}

/// What became of the lines so far.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    created: u64,
    existing: u64,
    refused: u64,
    without_key: u64,
    differing: u64,
    /// The last line that is settled.
    line: u64,
    /// The last line that a note told of.
    noted: u64,
}

struct Bulk {
    client: Client,
    json: bool,
    tally: Tally,
    bar: Option<ProgressBar>,
}

impl Bulk {
    /// Sends a chunk and counts what became of it.
    async fn take(&mut self, chunk: Chunk) -> Result<(), Failure> {
        for broken in &chunk.broken {
            let refusal = Refusal::new(Code::InvalidJson, broken.why.clone());
            self.refuse(broken.number, &Problem::from(refusal))?;
        }
        self.warn_of_missing_keys(&chunk);
        let (last, bytes) = (chunk.last, chunk.bytes);
        // A chunk that is refused as a whole is halved until the line that is to blame stands alone.
        let mut parts = vec![chunk.lines];
        while let Some(mut part) = parts.pop() {
            match self.send(&part).await? {
                Sent::Done => {}
                Sent::Refused(problem) if part.len() == 1 => self.refuse(part[0].number, &problem)?,
                Sent::Refused(_) => {
                    let rest = part.split_off(part.len() / 2);
                    parts.extend([rest, part]);
                }
            }
        }
        self.tally.line = last;
        self.progress(bytes);
        Ok(())
    }

    async fn send(&mut self, lines: &[Line]) -> Result<Sent, Failure> {
        if lines.is_empty() {
            return Ok(Sent::Done);
        }
        let jobs: Vec<_> = lines.iter().map(|line| line.json.clone()).collect();
        match self.client.enqueue_bulk_json(&jobs).await {
            Ok(answer) => {
                for (line, result) in lines.iter().zip(&answer.value.results) {
                    self.count(line.number, result)?;
                }
                Ok(Sent::Done)
            }
            Err(Error::Problem { problem, .. }) if matches!(problem.status, 400 | 413 | 422) => {
                Ok(Sent::Refused(problem))
            }
            Err(error) => Err(self.interrupted(&error, lines)),
        }
    }

    fn count(&mut self, number: u64, result: &EnqueueResult) -> Result<(), Failure> {
        self.tally.differing += u64::from(result.payload_differs);
        match &result.problem {
            Some(problem) => return self.refuse(number, problem),
            None if result.status == 201 => self.tally.created += 1,
            None => self.tally.existing += 1,
        }
        Ok(())
    }

    fn refuse(&mut self, number: u64, problem: &Problem) -> Result<(), Failure> {
        self.tally.refused += 1;
        if self.json {
            let line = json!({"line": number, "status": problem.status, "problem": problem});
            return self.quietly(|| show::print(&line.to_string()).map(drop));
        }
        self.quietly(|| {
            note(&show::lines(&format!("line {number}: {}", problem_text(problem))));
            Ok(())
        })
    }

    /// Without the bar in between.
    fn quietly<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    fn warn_of_missing_keys(&mut self, chunk: &Chunk) {
        let mut without = chunk.lines.iter().filter(|line| !line.has_key);
        if self.tally.without_key == 0
            && let Some(line) = without.clone().next()
        {
            let number = line.number;
            self.quietly(|| {
                note(&format!(
                    "warning: line {number} has no idempotency_key; if this bulk is interrupted and started again, lines \
                     without a key are enqueued twice"
                ));
            });
        }
        self.tally.without_key += without.by_ref().count() as u64;
    }

    fn progress(&mut self, bytes: u64) {
        let Tally { created, existing, refused, line, noted, .. } = self.tally;
        let message = format!("{created} created, {existing} existing, {refused} refused");
        match &self.bar {
            Some(bar) => {
                bar.set_position(bytes);
                bar.set_message(message);
            }
            None if line >= noted + LINES_PER_NOTE => {
                note(&format!("{line} lines: {message}"));
                self.tally.noted = line;
            }
            None => {}
        }
    }

    /// The server is gone for long, or refuses everything.
    fn interrupted(&self, error: &Error, lines: &[Line]) -> Failure {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let told = Told::from(error);
        let first = lines.first().map_or(0, |line| line.number);
        let Tally { created, existing, .. } = self.tally;
        let advice = format!(
            "{} lines are in ({created} created, {existing} existing); start it again, then lines with an idempotency_key are \
             not enqueued twice\n  {}",
            created + existing,
            told.advice
        );
        Failure::Told(Told { message: format!("stopped at line {first}: {}", told.message), advice, ..told })
    }

    fn finish(self) -> Result<Exit, Failure> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let Tally { created, existing, refused, without_key, differing, .. } = self.tally;
        if self.json {
            let summary = json!({"done": true, "created": created, "existing": existing, "refused": refused});
            show::print(&summary.to_string())?;
        } else {
            show::print(&format!("created {created}, existing {existing}, refused {refused}"))?;
        }
        if differing > 0 {
            note(&format!(
                "warning: {differing} jobs existed and were made from other content, which counts"
            ));
        }
        if without_key > 1 {
            note(&format!("warning: {without_key} lines had no idempotency_key"));
        }
        Ok(if refused == 0 { Exit::Done } else { Exit::Refused })
    }
}

/// What became of a chunk.
enum Sent {
    Done,
    /// As a whole.
    Refused(Box<Problem>),
}
