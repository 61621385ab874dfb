//! The answer to a stream: lines about lines, and the last one about all.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use serde::Serialize;
use tagwerk_api::answer::{RefusedLine, StoredLine, StreamEnd};
use tagwerk_api::problem::Problem;
use tagwerk_core::limits;
use tagwerk_engine::command::Enqueued;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::reading::patience;

/// Why a stream ended early.
#[derive(Debug)]
pub(super) struct Failure {
    /// The first line that was not judged.
    pub(super) line: u64,
    pub(super) problem: Problem,
}

/// Counts, and keeps or sends what is to be told.
#[derive(Debug, Default)]
pub(super) struct Told {
    created: u64,
    existing: u64,
    refused: u64,
    text: Vec<u8>,
    /// Where every line is told; without it the first refused ones are, at the end.
    pieces: Option<mpsc::Sender<Bytes>>,
    listener: Listener,
}

/// Whether there is somebody to tell.
#[derive(Debug, Default, PartialEq, Eq)]
enum Listener {
    #[default]
    There,
    /// A client that reads nothing for too long is told nothing more, not even the end: it is as good as gone.
    Gone,
}

impl Told {
    /// Tells of refused lines, when all has been read.
    pub(super) fn refused_only() -> Self {
        Self::default()
    }

    /// Tells of every line as soon as it is stored.
    pub(super) fn all(pieces: mpsc::Sender<Bytes>) -> Self {
        Self { pieces: Some(pieces), ..Self::default() }
    }

    /// A line was refused.
    pub(super) fn refused(&mut self, line: u64, problem: Problem) {
        let named = self.pieces.is_some()
            || (self.refused < limits::STREAM_REFUSALS_MAX as u64
                && self.text.len() < limits::STREAM_REFUSALS_MAX_BYTES);
        self.refused += 1;
        if named {
            self.write(&RefusedLine { line, status: problem.status, problem });
        }
    }

    /// The job of a line is there.
    pub(super) fn stored(&mut self, line: u64, enqueued: &Enqueued) {
        let (status, id, payload_differs, replaced) = match enqueued {
            Enqueued::Created(job) => (201, job.row.job.id, false, None),
            Enqueued::Existing { job, payload_differs, replaced } => {
                (200, job.row.job.id, *payload_differs, *replaced)
            }
            Enqueued::Pruned { id, payload_differs, replaced, .. } => (200, *id, *payload_differs, *replaced),
        };
        if status == 201 {
            self.created += 1;
        } else {
            self.existing += 1;
        }
        if self.pieces.is_some() {
            self.write(&StoredLine { line, status, id: id.0, payload_differs, replaced });
        }
    }

    fn write<T: Serialize>(&mut self, line: &T) {
        if self.listener == Listener::Gone {
            return;
        }
        // Plain data, so it can always be written.
        if serde_json::to_writer(&mut self.text, line).is_ok() {
            self.text.push(b'\n');
        }
    }

    /// Sends what there is to a client that reads along, and waits until there is room for it.
    pub(super) async fn send(&mut self) {
        self.send_within(patience(limits::WRITE_PAUSE_MS)).await;
    }

    async fn send_within(&mut self, patience: Duration) {
        let Some(pieces) = self.pieces.as_ref().filter(|_| !self.text.is_empty()) else { return };
        let piece = std::mem::take(&mut self.text).into();
        // The lines are stored all the same.
        if !matches!(timeout(patience, pieces.send(piece)).await, Ok(Ok(()))) {
            (self.pieces, self.listener) = (None, Listener::Gone);
        }
    }

    /// The same, if it has become much.
    pub(super) async fn send_if_large(&mut self) {
        if self.text.len() >= limits::STREAM_PIECE_BYTES {
            self.send().await;
        }
    }

    /// Writes the last line. Returns what has not been sent.
    pub(super) async fn end(&mut self, failure: Option<Failure>) -> Bytes {
        let (created, existing, refused) = (self.created, self.existing, self.refused);
        let done = failure.is_none();
        let (line, problem) = failure.map(|Failure { line, problem }| (line, Box::new(problem))).unzip();
        self.write(&StreamEnd { done, created, existing, refused, line, problem });
        self.send().await;
        std::mem::take(&mut self.text).into()
    }
}

/// An answer in pieces, as they come.
pub(super) struct PieceBody {
    first: Option<Bytes>,
    pieces: mpsc::Receiver<Bytes>,
}

impl PieceBody {
    /// This piece and those that follow.
    pub(super) const fn new(first: Option<Bytes>, pieces: mpsc::Receiver<Bytes>) -> Self {
        Self { first, pieces }
    }
}

impl HttpBody for PieceBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = match self.first.take() {
            Some(first) => Some(first),
            None => ready!(self.pieces.poll_recv(context)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use tagwerk_api::problem::Code;

    use super::*;

    fn refuse(told: &mut Told, bytes: usize) {
        // What stands around the text has less than 300 bytes.
        told.refused(1, Problem::new(Code::InvalidJson, "x".repeat(bytes)));
    }

    #[tokio::test]
    async fn a_piece_goes_out_from_its_size_on() {
        let (pieces, mut sent) = mpsc::channel(limits::STREAM_PIECES_MAX);
        let mut told = Told::all(pieces);
        refuse(&mut told, 10);
        let around = told.text.len() - 10;
        told.send_if_large().await;
        assert!(sent.try_recv().is_err(), "small");
        told.send().await;
        assert_eq!(sent.try_recv().unwrap().len(), around + 10);
        refuse(&mut told, limits::STREAM_PIECE_BYTES - around - 1);
        told.send_if_large().await;
        assert!(sent.try_recv().is_err(), "a byte is missing");
        told.text.push(b' ');
        told.send_if_large().await;
        assert_eq!(sent.try_recv().unwrap().len(), limits::STREAM_PIECE_BYTES);
    }

    #[tokio::test]
    async fn so_many_pieces_wait_for_a_slow_client_and_no_more() {
        let (pieces, mut sent) = mpsc::channel(limits::STREAM_PIECES_MAX);
        let mut told = Told::all(pieces);
        for _ in 0..limits::STREAM_PIECES_MAX {
            refuse(&mut told, 10);
            told.send().await;
        }
        refuse(&mut told, 10);
        let mut one_more = pin!(told.send());
        let polled = poll_fn(|context| Poll::Ready(one_more.as_mut().poll(context))).await;
        assert!(polled.is_pending());
        assert!(sent.recv().await.is_some());
        one_more.await;
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_for_too_long_is_told_nothing_more() {
        let (pieces, mut sent) = mpsc::channel(1);
        let mut told = Told::all(pieces);
        for _ in 0..3 {
            refuse(&mut told, 10);
            told.send_within(Duration::from_millis(1)).await;
        }
        assert!(told.end(None).await.is_empty(), "nothing is kept for nobody");
        assert!(sent.recv().await.is_some());
        assert!(sent.recv().await.is_none(), "the answer ends without a last line");
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_along_is_told_at_the_end() {
        let mut told = Told::refused_only();
        refuse(&mut told, 2 * limits::STREAM_PIECE_BYTES);
        told.send_if_large().await;
        told.send().await;
        let text = told.end(None).await;
        assert_eq!(text.split(|byte| *byte == b'\n').count(), 3, "two lines and what is behind the last");
        assert!(text.ends_with(b"{\"done\":true,\"created\":0,\"existing\":0,\"refused\":1}\n"));
    }
}
