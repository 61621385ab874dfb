//! `tagwerk enqueue --bulk`: a file of jobs, one a line, through a stream of `POST /jobs/bulk`.
//!
//! A line goes out byte for byte, as soon as it is read. What is wrong with one line is said with its number, and the
//! rest goes on. Lines that were sent and not yet answered are kept, a bounded number: when the stream breaks they are
//! sent again, unless one of them has no idempotency key and nobody knows whether it is in. A bulk that is interrupted
//! is started again: jobs with an idempotency key are made once.

mod lines;
mod tally;
mod window;

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use tagwerk_client::api::answer::{StreamEnd, StreamLine};
use tagwerk_client::api::problem::{Code, Problem, Refusal};
use tagwerk_client::{Client, Error, JobLines, Retries};
use tokio::sync::mpsc;

use super::connect::{PATIENCE, Remote};
use super::exit::Exit;
use super::failure::{Failure, Told};
use super::values::unreadable;
use lines::Entry;
use tally::Tally;
use window::Window;

/// About two seconds: a server that was started just now is there by then.
const BEGINNING: Retries =
    Retries { tries: 6, first: Duration::from_millis(100), cap: Duration::from_secs(1), seed: 0 };

/// A stream that nothing comes for is ended, and another begun with the next line. A server waits longer.
const IDLE: Duration = Duration::from_secs(5);

/// The command.
pub(crate) async fn run(file: &Path, remote: &Remote) -> Result<Exit, Failure> {
    let (reader, bytes) = open(file)?;
    let client = remote.client()?;
    // A server that is not there at all is said soon; later on it may only be restarting.
    client.with_retries(BEGINNING).livez().await?;
    let mut source = Source { pieces: lines::read_ahead(reader), read: VecDeque::new(), file };
    let mut bulk = Bulk { tally: Tally::new(remote, bytes), window: Window::default() };
    let mut tries = 0;
    while bulk.has_more(&mut source).await? {
        let settled = bulk.tally.line;
        let Some(error) = bulk.stream(&client, &mut source).await? else { continue };
        tries = if bulk.tally.line > settled { 1 } else { tries + 1 };
        let unknown = error.is_outcome_unknown();
        let may_repeat = error.is_retryable() || (unknown && bulk.window.all_have_keys());
        match PATIENCE.wait(tries, error.retry_after()).filter(|_| may_repeat) {
            // tidy: sleep because this is the back-off itself.
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(bulk.interrupted(&error)),
        }
    }
    bulk.tally.finish()
}

/// The file and its size, if it has one.
fn open(path: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let bytes = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|facts| facts.len());
    Ok((Box::new(file), bytes))
}

/// Lines as they are read.
struct Source<'f> {
    pieces: mpsc::Receiver<std::io::Result<Vec<Entry>>>,
    read: VecDeque<Entry>,
    file: &'f Path,
}

impl Source<'_> {
    /// A line that is there already.
    fn ready(&mut self) -> Result<Option<Entry>, Failure> {
        if self.read.is_empty()
            && let Ok(piece) = self.pieces.try_recv()
        {
            self.take(piece)?;
        }
        Ok(self.read.pop_front())
    }

    /// Waits for lines. `false`: there are no more. May be dropped while it waits.
    async fn wait(&mut self) -> Result<bool, Failure> {
        if self.read.is_empty()
            && let Some(piece) = self.pieces.recv().await
        {
            self.take(piece)?;
        }
        Ok(!self.read.is_empty())
    }

    fn take(&mut self, piece: std::io::Result<Vec<Entry>>) -> Result<(), Failure> {
        self.read.extend(piece.map_err(|error| unreadable(self.file, &error))?);
        Ok(())
    }
}

/// What comes of a stream: lines of its answer, or why there are no more.
type Heard = mpsc::UnboundedReceiver<Result<StreamLine, Error>>;

struct Bulk {
    tally: Tally,
    window: Window,
}

impl Bulk {
    /// Whether there is something to send.
    async fn has_more(&mut self, source: &mut Source<'_>) -> Result<bool, Failure> {
        while self.window.is_empty() {
            match source.ready()? {
                Some(entry) => self.read(entry)?,
                None if !source.wait().await? => return Ok(false),
                None => {}
            }
        }
        Ok(true)
    }

    /// A line that was read: kept until it is settled, or refused at once.
    fn read(&mut self, entry: Entry) -> Result<(), Failure> {
        match entry {
            Ok(line) => {
                self.tally.warn_of_missing_key(&line);
                self.window.push(line);
                Ok(())
            }
            Err(broken) => {
                let refusal = Refusal::new(Code::InvalidJson, broken.why);
                self.tally.refuse(broken.number, &Problem::from(refusal))
            }
        }
    }

    /// One stream, until there are no more lines, none come for a while, or it breaks. Returns why it broke.
    async fn stream(&mut self, client: &Client, source: &mut Source<'_>) -> Result<Option<Error>, Failure> {
        let (lines, mut heard) = open_stream(client);
        let mut lines = Some(lines);
        self.window.send_again();
        loop {
            if let Some(sending) = &mut lines {
                match self.feed(sending, source).await? {
                    Fed::More => {}
                    Fed::Over => lines = None,
                }
            }
            let settled = tokio::select! {
                biased;
                line = heard.recv() => Some(line),
                more = source.wait(), if lines.is_some() && !self.window.is_full() => {
                    if !more? {
                        lines = None;
                    }
                    None
                }
                // tidy: sleep because it is how long a stream waits for the next line
                () = tokio::time::sleep(IDLE), if lines.is_some() && self.window.is_empty() => {
                    lines = None;
                    None
                }
            };
            if let Some(line) = settled
                && let Some(end) = self.settle(line)?
            {
                return Ok(end.err());
            }
            // What has come besides, before the next is sent.
            while let Ok(line) = heard.try_recv() {
                if let Some(end) = self.settle(Some(line))? {
                    return Ok(end.err());
                }
            }
        }
    }

    /// Sends what is there and has room.
    async fn feed(&mut self, lines: &mut JobLines, source: &mut Source<'_>) -> Result<Fed, Failure> {
        loop {
            while let Some(line) = self.window.unsent() {
                // Why it has ended, its answer says.
                if lines.send(line.json.as_str()).await.is_err() {
                    return Ok(Fed::Over);
                }
            }
            if self.window.is_full() {
                break;
            }
            match source.ready()? {
                Some(entry) => self.read(entry)?,
                None => break,
            }
        }
        Ok(if lines.flush().await.is_ok() { Fed::More } else { Fed::Over })
    }

    /// A line of the answer. Returns how the stream has ended, if it has.
    fn settle(
        &mut self,
        line: Option<Result<StreamLine, Error>>,
    ) -> Result<Option<Result<(), Error>>, Failure> {
        match line {
            Some(Ok(StreamLine::Stored(stored))) => {
                if let Some(line) = self.window.settled() {
                    self.tally.stored(&line, &stored);
                }
            }
            Some(Ok(StreamLine::Refused(refused))) => {
                if let Some(line) = self.window.settled() {
                    self.tally.refuse(line.number, &refused.problem)?;
                    self.tally.settled(&line);
                }
            }
            Some(Ok(StreamLine::End(StreamEnd { problem: None, .. }))) | None => return Ok(Some(Ok(()))),
            Some(Ok(StreamLine::End(StreamEnd { problem: Some(problem), .. }))) => {
                return Ok(Some(Err(Error::Problem { problem, retry_after: None })));
            }
            Some(Err(error)) => return Ok(Some(Err(error))),
        }
        Ok(None)
    }

    /// The server is gone for long, or refuses everything.
    fn interrupted(&self, error: &Error) -> Failure {
        self.tally.end_bar();
        let told = Told::from(error);
        let first = self.window.first().unwrap_or_default();
        let Tally { created, existing, .. } = self.tally;
        let advice = format!(
            "{} lines are in ({created} created, {existing} existing); start it again, then lines with an idempotency_key are \
             not enqueued twice\n  {}",
            created + existing,
            told.advice
        );
        Failure::Told(Told { message: format!("stopped at line {first}: {}", told.message), advice, ..told })
    }
}

/// Whether more can be sent.
enum Fed {
    More,
    Over,
}

/// A stream whose answers are read whatever else is done. They are no more than lines were sent.
fn open_stream(client: &Client) -> (JobLines, Heard) {
    let (lines, mut answers) = client.stream_jobs();
    let (say, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(answer) = answers.next().await.transpose() {
            let is_error = answer.is_err();
            if say.send(answer).is_err() || is_error {
                return;
            }
        }
    });
    (lines, heard)
}
