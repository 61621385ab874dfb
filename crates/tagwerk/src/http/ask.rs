//! From async to the engine and back: a command goes in with one end of a channel, the other end is awaited.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tagwerk_api::problem::Code;
use tagwerk_core::{JobId, LeaseBits};
use tagwerk_engine::Engine;
use tagwerk_engine::command::{ClaimAnswer, EngineError, WorkAnswer};
use tagwerk_engine::message::ReplyTo;
use tagwerk_engine::ports::{Reply, Responder};
use tokio::sync::oneshot;

use super::problem::Refused;

/// The sending end, as the engine knows it.
struct Slot<T>(oneshot::Sender<T>);

impl<T: Send> Responder<T> for Slot<T> {
    fn is_waiting(&self) -> bool {
        !self.0.is_closed()
    }

    fn answer(self: Box<Self>, answer: T) -> Result<(), T> {
        self.0.send(answer)
    }
}

/// A place for an answer, and where it will be.
pub(super) fn slot<T: Send + 'static>() -> (Reply<T>, oneshot::Receiver<T>) {
    let (sender, receiver) = oneshot::channel();
    (Box::new(Slot(sender)), receiver)
}

/// Sends a command and waits for its answer.
pub(crate) async fn ask<T: Send + 'static>(send: impl FnOnce(ReplyTo<T>)) -> Result<T, EngineError> {
    let (reply, answer) = slot();
    send(reply);
    // An engine that dropped the command without an answer has panicked.
    answer.await.unwrap_or(Err(EngineError::Internal))
}

/// An answer that may hold leases.
pub(super) trait HandsOut: Send + 'static {
    /// The leases that are lost if nobody gets the answer.
    fn leases(&self) -> Vec<(JobId, LeaseBits)>;
}

impl HandsOut for ClaimAnswer {
    fn leases(&self) -> Vec<(JobId, LeaseBits)> {
        // A replayed answer belongs to a worker that has its leases already.
        if self.replayed {
            return Vec::new();
        }
        let bits = |claimed: &tagwerk_engine::command::Claimed| {
            let job = &claimed.job.row.job;
            job.lease.as_ref().map(|lease| (job.id, lease.bits))
        };
        self.jobs.iter().filter_map(bits).collect()
    }
}

impl HandsOut for WorkAnswer {
    fn leases(&self) -> Vec<(JobId, LeaseBits)> {
        self.claimed.as_ref().map(HandsOut::leases).unwrap_or_default()
    }
}

/// Leases on their way to a worker. Dropped before the answer was handed to the connection, they are given back, so that
/// a worker that has gone away burns no attempt.
pub(super) struct Leases {
    engine: Engine,
    leases: Vec<(JobId, LeaseBits)>,
}

impl Leases {
    fn delivered(mut self) {
        self.leases.clear();
    }

    /// A body that takes the leases along to this caller.
    pub(super) fn body(self, bytes: Bytes, caller: Option<Caller>) -> Body {
        Body::new(LeaseBody { bytes, leases: Some(self), caller })
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        if !self.leases.is_empty() {
            tracing::debug!(leases = self.leases.len(), "a claimer went away before its answer was written");
            self.engine.give_back(std::mem::take(&mut self.leases));
        }
    }
}

/// Waits for an answer with leases. If whoever waits is dropped, an answer that is already in the channel is given back.
struct Waiting<T: HandsOut> {
    engine: Engine,
    answer: oneshot::Receiver<Result<T, EngineError>>,
}

impl<T: HandsOut> Drop for Waiting<T> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(answer)) = self.answer.try_recv() {
            drop(Leases { engine: self.engine.clone(), leases: answer.leases() });
        }
    }
}

/// Sends a command whose answer may hold leases and waits for it, as long as the client is there.
pub(super) async fn ask_for_leases<T: HandsOut>(
    engine: &Engine,
    caller: Option<&Caller>,
    send: impl FnOnce(ReplyTo<T>),
) -> Result<(T, Leases), Refused> {
    let (reply, answer) = slot();
    let mut waiting = Waiting { engine: engine.clone(), answer };
    send(reply);
    let answer = tokio::select! {
        biased;
        () = gone(caller) => return Err(closed_claim()),
        answer = &mut waiting.answer => answer.unwrap_or(Err(EngineError::Internal))?,
    };
    let leases = Leases { engine: engine.clone(), leases: answer.leases() };
    Ok((answer, leases))
}

/// Ends when the client has closed its side.
async fn gone(caller: Option<&Caller>) {
    match caller {
        Some(caller) => caller.0.closed().await,
        None => std::future::pending().await,
    }
}

/// Why a client that has closed its side gets no job: nobody can tell it from one that is gone, and a job in nobody's
/// hands would be lost until its lease ends.
pub(super) fn closed_claim() -> Refused {
    Refused::new(
        Code::InvalidRequest,
        "the client has closed its side of the connection, as one does that goes away; keep it open until the answer to \
         a claim has come",
    )
}

/// A connection, as far as it matters whether an answer can still reach somebody. A client that has closed only its own
/// side counts as gone.
pub(crate) trait Connection: Send + Sync + 'static {
    /// Whether the client is known to have gone away.
    fn is_gone(&self) -> bool;

    /// Ends when the client goes away.
    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Whoever waits for the answer to a request.
#[derive(Clone)]
pub(crate) struct Caller(Arc<dyn Connection>);

impl Caller {
    /// The other end of this connection.
    pub(crate) fn new(connection: Arc<dyn Connection>) -> Self {
        Self(connection)
    }

    /// Whether the client has closed its side.
    pub(super) fn is_gone(&self) -> bool {
        self.0.is_gone()
    }
}

/// What the connection is given at a time. It takes the next piece when there is room for it, so the last one is taken when
/// most of the answer is on its way.
const PIECE_BYTES: usize = 64 * 1024;

/// A body that counts as delivered when the connection takes its last piece and the client is still there.
struct LeaseBody {
    bytes: Bytes,
    leases: Option<Leases>,
    caller: Option<Caller>,
}

impl HttpBody for LeaseBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        // Where no lease is at stake it does not matter who reads.
        let at_stake = self.leases.as_ref().is_some_and(|leases| !leases.leases.is_empty());
        if at_stake && self.caller.as_ref().is_some_and(Caller::is_gone) {
            self.leases = None;
            self.bytes = Bytes::new();
            return Poll::Ready(Some(Err(std::io::ErrorKind::BrokenPipe.into())));
        }
        let length = self.bytes.len().min(PIECE_BYTES);
        let piece = self.bytes.split_to(length);
        if self.bytes.is_empty()
            && let Some(leases) = self.leases.take()
        {
            leases.delivered();
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
