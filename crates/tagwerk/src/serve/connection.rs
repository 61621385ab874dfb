//! Connections: how many, how patient with each, and what they speak (HTTP/1.1, and HTTP/2 without TLS).

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tagwerk_core::limits;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

use super::listen::{Accepted, Listener};
use crate::http::Gate;
use crate::metrics::{Connected, Metrics};

/// How long to wait after the system has refused a connection, usually for want of file descriptors.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

const fn patience(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}

/// What all connections share.
pub(super) struct Connections {
    gate: Gate,
    metrics: Arc<Metrics>,
    builder: auto::Builder<TokioExecutor>,
    free: Arc<Semaphore>,
}

impl Connections {
    /// Connections to this interface, as many as the limit and the file descriptors allow.
    pub(super) fn new(gate: Gate, metrics: Arc<Metrics>, files: Option<u64>) -> Self {
        let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
        let most = files.saturating_sub(limits::FILES_RESERVED).clamp(1, limits::CONNECTIONS_MAX);
        if most < limits::CONNECTIONS_MAX {
            tracing::info!(connections = most, "the limit of open files allows fewer connections than usual");
        }
        Self { gate, metrics, builder: builder(), free: Arc::new(Semaphore::new(most)) }
    }

    /// Accepts connections for ever. When as many are open as may be, further ones wait in the system's queue.
    pub(super) async fn accept(&self, listener: &Listener, open: &GracefulShutdown) {
        let mut refused = false;
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&self.free).acquire_owned().await {
            match listener.accept().await {
                Ok(Accepted::Tcp(stream)) => self.serve(stream, place, open.watcher()),
                Ok(Accepted::Unix(stream)) => self.serve(stream, place, open.watcher()),
                Err(error) if is_the_clients(&error) => continue,
                Err(error) => {
                    if !refused {
                        tracing::error!(%error, "connections cannot be accepted");
                    }
                    refused = true;
                    tokio::time::sleep(AFTER_REFUSAL).await; // tidy: sleep because the system does not say when it can again
                    continue;
                }
            }
            refused = false;
        }
    }

    fn serve<S>(&self, stream: S, place: OwnedSemaphorePermit, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connected = self.metrics.connected();
        tokio::spawn(converse(
            self.gate.clone(),
            self.builder.clone(),
            (stream, watcher, (place, connected)),
        ));
    }
}

/// One connection, from its first request to its end.
async fn converse<S>(
    gate: Gate,
    builder: auto::Builder<TokioExecutor>,
    connection: (S, Watcher, (OwnedSemaphorePermit, Connected)),
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (stream, watcher, _place) = connection;
    let spoken = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&spoken);
    let service = service_fn(move |request: Request<Incoming>| {
        heard.store(true, Ordering::Relaxed);
        let gate = gate.clone();
        async move { Ok::<_, Infallible>(gate.answer(request).await) }
    });
    let io = TokioIo::new(Patient { stream, stalled: None });
    let serving = watcher.watch(builder.serve_connection(io, service).into_owned());
    tokio::select! {
        ended = serving => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection has ended");
            }
        }
        () = silence(&spoken) => tracing::debug!("a connection has said nothing and is closed"),
    }
}

/// Ends if no request has come for a while after the connection was opened.
async fn silence(spoken: &AtomicBool) {
    // tidy: sleep because it is how long a client may be silent
    tokio::time::sleep(patience(limits::FIRST_REQUEST_MS)).await;
    if spoken.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience(limits::HEAD_READ_MS))
        .max_buf_size(limits::HEAD_MAX_BYTES)
        .keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(patience(limits::HEAD_READ_MS))
        .keep_alive_timeout(patience(limits::FIRST_REQUEST_MS))
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits::HEAD_MAX_BYTES).unwrap_or(u32::MAX));
    builder
}

/// The client went away between its knock and our opening.
fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | NotConnected)
}

/// A stream that is given up when the other side takes nothing for too long.
struct Patient<S> {
    stream: S,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// Passes on what writing said, unless it has been saying "later" for too long.
    fn bear<T>(&mut self, said: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if said.is_ready() {
            self.stalled = None;
            return said;
        }
        let stalled = self.stalled.get_or_insert_with(|| {
            // tidy: sleep because it is how long a client may take nothing
            Box::pin(tokio::time::sleep(patience(limits::WRITE_PAUSE_MS)))
        });
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bear(said, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bear(said, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let said = Pin::new(&mut self.stream).poll_flush(context);
        self.bear(said, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let said = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bear(said, context)
    }
}
