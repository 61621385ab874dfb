//! Jobs without end through one request, and what became of each while more are sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use reqwest::header::CONTENT_TYPE;
use tagwerk_api::StreamResults;
use tagwerk_api::answer::StreamLine;
use tagwerk_api::headers::NDJSON;
use tagwerk_api::query::StreamQuery;
use tokio::sync::mpsc;

use crate::{Client, Error};

/// Lines go out in pieces of about this size: enough that the trip does not count.
const PIECE_BYTES: usize = 32 * 1024;

/// Pieces that wait for the network. Sending waits for room.
const PIECES: usize = 4;

/// A line of an answer is shorter than this by far.
const LINE_MAX_BYTES: usize = 1024 * 1024;

/// The sending end of a stream. Dropped, it ends the stream after what was sent.
#[derive(Debug)]
pub struct JobLines {
    pieces: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
}

/// The stream is over: [`JobAnswers::next`] says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream has ended")]
pub struct StreamEnded;

impl JobLines {
    /// Sends a job, a JSON text without line breaks; sooner or later, see [`JobLines::flush`].
    pub async fn send(&mut self, job: &str) -> Result<(), StreamEnded> {
        self.piece.extend_from_slice(job.as_bytes());
        self.piece.push(b'\n');
        if self.piece.len() < PIECE_BYTES { Ok(()) } else { self.flush().await }
    }

    /// Sends what waits for more to come.
    pub async fn flush(&mut self) -> Result<(), StreamEnded> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        self.pieces.send(piece.into()).await.map_err(|_| StreamEnded)
    }

    /// Ends the stream after what was sent.
    pub async fn finish(mut self) -> Result<(), StreamEnded> {
        self.flush().await
    }
}

/// The body of the request, as it comes.
struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The receiving end of a stream: one answer for each job that was sent, in order, and the end.
#[derive(Debug)]
pub struct JobAnswers {
    client: Client,
    state: State,
    text: Vec<u8>,
    lines: VecDeque<StreamLine>,
}

#[derive(Debug)]
enum State {
    Waiting(tokio::task::JoinHandle<Result<reqwest::Response, reqwest::Error>>),
    Reading(reqwest::Response),
    Over,
}

impl Client {
    /// `POST /jobs/bulk?results=all` as a stream of lines. What is sent must be read meanwhile: the server stops reading
    /// when its answers are not read. Never repeated: with the answers that have come the caller knows what is in.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn stream_jobs(&self) -> (JobLines, JobAnswers) {
        let (pieces, body) = mpsc::channel(PIECES);
        let query = StreamQuery { results: Some(StreamResults::All) }.to_query();
        let request = self
            .http()
            .post(self.address().url(&format!("/jobs/bulk{query}")))
            .header(CONTENT_TYPE, NDJSON)
            .body(reqwest::Body::wrap(Pieces(body)));
        let state = State::Waiting(tokio::spawn(request.send()));
        let answers = JobAnswers { client: self.clone(), state, text: Vec::new(), lines: VecDeque::new() };
        (JobLines { pieces, piece: Vec::new() }, answers)
    }
}

impl JobAnswers {
    /// The next line of the answer, [`StreamLine::End`] at its end and `None` behind it. An answer that breaks off before
    /// its end is [`Error::Broken`].
    pub async fn next(&mut self) -> Result<Option<StreamLine>, Error> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                if matches!(line, StreamLine::End(_)) {
                    self.state = State::Over;
                }
                return Ok(Some(line));
            }
            match &mut self.state {
                State::Over => return Ok(None),
                State::Waiting(sending) => {
                    let sent = sending.await;
                    self.state = State::Over;
                    let sent = sent.map_err(|error| self.client.broken(Box::new(error)))?;
                    let response = sent.map_err(|error| self.client.failed(error, Duration::ZERO))?;
                    self.state = State::Reading(self.client.streaming(response).await?);
                }
                State::Reading(response) => {
                    let piece = response.chunk().await;
                    match piece {
                        Ok(Some(piece)) => self.text.extend_from_slice(&piece),
                        Ok(None) => {
                            self.state = State::Over;
                            return Err(self.client.broken("the answer has no last line".into()));
                        }
                        Err(error) => {
                            self.state = State::Over;
                            return Err(self.client.failed(error, Duration::ZERO));
                        }
                    }
                    self.read()?;
                }
            }
        }
    }

    /// Takes the whole lines of what has come.
    fn read(&mut self) -> Result<(), Error> {
        let Some(end) = self.text.iter().rposition(|byte| *byte == b'\n') else {
            return if self.text.len() > LINE_MAX_BYTES {
                Err(self.misread("a line is too long"))
            } else {
                Ok(())
            };
        };
        let rest = self.text.split_off(end + 1);
        let text = std::mem::replace(&mut self.text, rest);
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line = serde_json::from_slice(line).map_err(|error| self.misread(&error.to_string()))?;
            self.lines.push_back(line);
        }
        Ok(())
    }

    fn misread(&mut self, why: &str) -> Error {
        self.state = State::Over;
        self.client.bad_answer(200, why.to_owned())
    }
}
