//! The socket of a connection, shared by those who read and write it and those who ask whether the client is still there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use tagwerk_core::limits;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Sleep;

use super::connection::patience;
use crate::http::Connection;

/// The socket of an accepted connection.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(context),
            Self::Unix(stream) => stream.poll_read_ready(context),
        }
    }

    fn try_read(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read_buf(buffer),
            Self::Unix(stream) => stream.try_read_buf(buffer),
        }
    }

    /// Waits until something has come in and looks at it without taking it. Returns how much; 0: the other side is closed.
    pub(super) async fn wait_for_more(&self) -> io::Result<usize> {
        loop {
            let looked = match self {
                Self::Tcp(stream) => {
                    stream.readable().await?;
                    stream.try_io(Interest::READABLE, || self.look())
                }
                Self::Unix(stream) => {
                    stream.readable().await?;
                    stream.try_io(Interest::READABLE, || self.look())
                }
            };
            match looked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                looked => return looked,
            }
        }
    }

    fn look(&self) -> io::Result<usize> {
        let mut byte = [0_u8];
        let (_, length) = recv(self, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        Ok(length)
    }

    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(context),
            Self::Unix(stream) => stream.poll_write_ready(context),
        }
    }

    fn try_write(&self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write_vectored(slices),
            Self::Unix(stream) => stream.try_write_vectored(slices),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Connection for Socket {
    /// Looks at what has come in, without taking it. The runtime may not have heard yet that the client is gone; the
    /// system has.
    fn is_gone(&self) -> bool {
        match self.look() {
            Ok(length) => length == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            // What has come in is the next request: this client is there, and speaks.
            if self.wait_for_more().await.is_ok_and(|length| length > 0) {
                std::future::pending::<()>().await;
            }
        })
    }
}

/// A socket as the HTTP library reads and writes it. It is given up when the other side takes nothing for too long.
pub(super) struct PatientSocket {
    socket: Arc<Socket>,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl PatientSocket {
    /// Reads and writes this socket.
    pub(super) const fn new(socket: Arc<Socket>) -> Self {
        Self { socket, stalled: None }
    }

    /// Writes when there is room, unless there has been none for too long.
    fn write(&mut self, context: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            match self.socket.poll_writable(context) {
                Poll::Ready(writable) => writable?,
                Poll::Pending => return self.bear(context),
            }
            match self.socket.try_write(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.stalled = None;
                    return Poll::Ready(written);
                }
            }
        }
    }

    fn bear<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let stalled = self.stalled.get_or_insert_with(|| {
            // tidy: sleep because it is how long a client may take nothing
            Box::pin(tokio::time::sleep(patience(limits::WRITE_PAUSE_MS)))
        });
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for PatientSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_readable(context))?;
            match self.socket.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(|_| ())),
            }
        }
    }
}

impl AsyncWrite for PatientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&*self.socket, Shutdown::Write).map_err(io::Error::from))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn a_client_that_has_closed_is_gone_at_once() {
        let (here, there) = std::os::unix::net::UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let socket = Socket::Unix(UnixStream::from_std(here).unwrap());
        assert!(!socket.is_gone());
        (&there).write_all(b"x").unwrap();
        assert!(!socket.is_gone(), "something has come in");
        std::future::poll_fn(|context| socket.poll_readable(context)).await.unwrap();
        assert_eq!(socket.try_read(&mut ReadBuf::new(&mut [0])).unwrap(), 1);
        let mut closed = socket.closed();
        assert!(poll_once(&mut closed).await.is_pending());
        drop(there);
        assert!(socket.is_gone());
        closed.await;
    }

    async fn poll_once(future: &mut (impl Future<Output = ()> + Unpin)) -> Poll<()> {
        std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
    }

    #[tokio::test]
    async fn a_client_that_has_sent_more_is_there() {
        let (here, there) = std::os::unix::net::UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let socket = Socket::Unix(UnixStream::from_std(here).unwrap());
        (&there).write_all(b"GET").unwrap();
        drop(there);
        let mut closed = socket.closed();
        assert!(poll_once(&mut closed).await.is_pending());
        assert_eq!(socket.wait_for_more().await.unwrap(), 1);
    }
}
