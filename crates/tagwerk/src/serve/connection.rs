//! Connections: how many, how patient with each, and what they speak (HTTP/1.1 and HTTP/2, with TLS or without).

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tagwerk_core::limits;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::listen::Listener;
use super::socket::{PatientSocket, Socket};
use super::tls::{Crowd, Tls};
use crate::http::{Caller, Gate};
use crate::metrics::Metrics;

/// How long to wait after the system has refused a connection, usually for want of file descriptors.
const AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// A time of the limits.
pub(super) const fn patience(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}

/// What all connections share.
pub(super) struct Connections {
    gate: Gate,
    metrics: Arc<Metrics>,
    tls: Option<Arc<Tls>>,
    handshakes: Arc<Crowd>,
    builder: auto::Builder<TokioExecutor>,
    free: Arc<Semaphore>,
}

impl Connections {
    /// Connections to this interface, as many as the limit and the file descriptors allow.
    pub(super) fn new(
        (gate, tls): (Gate, Option<Arc<Tls>>),
        metrics: Arc<Metrics>,
        files: Option<u64>,
    ) -> Self {
        let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
        let most = files.saturating_sub(limits::FILES_RESERVED).clamp(1, limits::CONNECTIONS_MAX);
        if most < limits::CONNECTIONS_MAX {
            tracing::info!(connections = most, "the limit of open files allows fewer connections than usual");
        }
        // Half of the places at least are for those who are in.
        let handshakes = Crowd::new(limits::HANDSHAKES_MAX.min(most / 2));
        Self { gate, metrics, tls, handshakes, builder: builder(), free: Arc::new(Semaphore::new(most)) }
    }

    /// Accepts connections for ever. When as many are open as may be, further ones wait in the system's queue.
    pub(super) async fn accept(&self, listener: &Listener, open: &GracefulShutdown) {
        let mut refused = false;
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&self.free).acquire_owned().await {
            match listener.accept().await {
                Ok(socket) => self.serve(socket, place, open.watcher()),
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

    fn serve(&self, socket: Socket, place: OwnedSemaphorePermit, watcher: Watcher) {
        let held = (place, self.metrics.connected());
        let speech = Speech { gate: self.gate.clone(), builder: self.builder.clone(), watcher };
        let (socket, tls) = (Arc::new(socket), self.tls.clone().map(|tls| (tls, self.handshakes.enter())));
        tokio::spawn(async move {
            let _held = held;
            match tls {
                None => {
                    let client = Caller::new(Arc::<Socket>::clone(&socket));
                    speech.converse(client, PatientSocket::new(socket)).await;
                }
                Some((tls, place)) => {
                    if let Some((client, io)) = tls.encrypt(socket, place).await {
                        speech.converse(Caller::new(client), io).await;
                    }
                }
            }
        });
    }
}

/// What one connection needs to be served.
struct Speech {
    gate: Gate,
    builder: auto::Builder<TokioExecutor>,
    watcher: Watcher,
}

impl Speech {
    /// From the first request to the end.
    async fn converse(self, caller: Caller, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { gate, builder, watcher } = self;
        let spoken = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&spoken);
        let service = service_fn(move |mut request: Request<Incoming>| {
            heard.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(caller.clone());
            let gate = gate.clone();
            async move { Ok::<_, Infallible>(gate.answer(request).await) }
        });
        let serving = watcher.watch(builder.serve_connection(TokioIo::new(io), service).into_owned());
        tokio::select! {
            ended = serving => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection has ended");
                }
            }
            () = silence(&spoken) => tracing::debug!("a connection has said nothing and is closed"),
        }
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
        // A client may close its side when it has sent its request, and still get its answer. Who claims may not:
        // whether it is still there, the connection of the request is asked for.
        .half_close(true)
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
