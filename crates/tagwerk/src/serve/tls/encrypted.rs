//! An encrypted connection, shared by the HTTP library, which reads and writes it, and those who ask whether the client is
//! still there.
//!
//! A client that closes says so in a message of TLS, so the bytes that have come in say nothing until they are decrypted:
//! whoever asks decrypts them, and what turns out to be the next request is kept for the reader, who is woken.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::net::{RecvFlags, recv};
use rustls::ServerConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use crate::http::Connection;
use crate::serve::socket::{PatientSocket, Socket};

/// Bytes that are looked at in one go.
const PIECE_BYTES: usize = 4096;

/// The connection.
pub(in crate::serve) struct Encrypted {
    socket: Arc<Socket>,
    inner: Mutex<Inner>,
}

struct Inner {
    stream: TlsStream<PatientSocket>,
    /// Who waits for something to read.
    reader: Option<Waker>,
}

/// What the client has let us know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// Nothing new.
    Nothing,
    /// It has sent more.
    More,
    /// It is gone.
    Gone,
}

impl Encrypted {
    /// A connection after its handshake, and the half that reads and writes.
    pub(super) fn new(socket: Arc<Socket>, stream: TlsStream<PatientSocket>) -> (Arc<Self>, Half) {
        let shared = Arc::new(Self { socket, inner: Mutex::new(Inner { stream, reader: None }) });
        (Arc::clone(&shared), Half(shared))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic inside leaves a connection that at worst ends with an error.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what has come, without waiting.
    fn listen(&self) -> Heard {
        let mut inner = self.lock();
        let Inner { stream, reader } = &mut *inner;
        let heard = take_in(&self.socket, stream.get_mut().1);
        if heard != Heard::Nothing
            && let Some(reader) = reader.take()
        {
            // The system may tell it nothing: what it waits for we have taken.
            reader.wake();
        }
        heard
    }
}

/// Decrypts what has come in until there is something to say.
fn take_in(socket: &Socket, session: &mut ServerConnection) -> Heard {
    let mut piece = [0; PIECE_BYTES];
    loop {
        match session.process_new_packets() {
            Ok(state) if state.plaintext_bytes_to_read() > 0 => return Heard::More,
            Ok(state) if state.peer_has_closed() => return Heard::Gone,
            Ok(_) => {}
            Err(_) => return Heard::Gone,
        }
        let length = match recv(socket, &mut piece, RecvFlags::DONTWAIT).map_err(io::Error::from) {
            Ok((0, _)) => return Heard::Gone,
            Ok((length, _)) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
            Err(_) => return Heard::Gone,
        };
        let mut rest = piece.get(..length).unwrap_or_default();
        while !rest.is_empty() {
            let taken = session.read_tls(&mut rest);
            if !taken.is_ok_and(|taken| taken > 0) || session.process_new_packets().is_err() {
                return Heard::Gone;
            }
        }
    }
}

impl Connection for Encrypted {
    fn is_gone(&self) -> bool {
        self.listen() == Heard::Gone
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            loop {
                match self.listen() {
                    Heard::Gone => return,
                    // It has sent its next request: this client is there, and speaks.
                    Heard::More => std::future::pending::<()>().await,
                    Heard::Nothing => {}
                }
                if !self.socket.wait_for_more().await.is_ok_and(|length| length > 0) {
                    return;
                }
            }
        })
    }
}

/// The half that reads and writes.
pub(in crate::serve) struct Half(Arc<Encrypted>);

impl AsyncRead for Half {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.0.lock();
        let read = Pin::new(&mut inner.stream).poll_read(context, buffer);
        inner.reader = read.is_pending().then(|| context.waker().clone());
        read
    }
}

impl AsyncWrite for Half {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.lock().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.lock().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_shutdown(context)
    }
}
