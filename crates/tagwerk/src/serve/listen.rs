//! The place where connections come in: an address of the network or a Unix socket.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener};

use super::socket::Socket;
use crate::config::Listen;

/// The socket is for its owner only.
const SOCKET_MODE: u32 = 0o600;
/// Connections that the system keeps until we accept them.
const BACKLOG: u32 = 1024;

/// Why it is not possible to listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    /// Somebody else is there.
    #[error(
        "{at} is in use by another process; stop that one, or give another --listen (port 0: any free port)"
    )]
    InUse {
        /// The address.
        at: String,
    },
    /// A file that is no socket is in the way.
    #[error("{path} exists and is no socket; remove it or give another --listen unix:PATH")]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system says no.
    #[error("cannot listen on {at}: {error}")]
    Io {
        /// The address.
        at: String,
        /// What it says.
        #[source]
        error: io::Error,
    },
}

/// Where connections come in.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The socket's file, removed when the listener goes.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Whoever starts next replaces what is left.
        drop(std::fs::remove_file(&self.0));
    }
}

impl Listener {
    /// Listens.
    pub(super) fn bind(listen: &Listen) -> Result<Self, ListenError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AddrInUse => ListenError::InUse { at: listen.to_string() },
            _ => ListenError::Io { at: listen.to_string(), error },
        };
        match listen {
            Listen::Tcp(addr) => {
                let bind = || {
                    let socket = if addr.is_ipv4() {
                        tokio::net::TcpSocket::new_v4()
                    } else {
                        tokio::net::TcpSocket::new_v6()
                    }?;
                    socket.set_reuseaddr(true)?;
                    socket.bind(*addr)?;
                    socket.listen(BACKLOG)
                };
                bind().map(Self::Tcp).map_err(failed)
            }
            Listen::Unix(path) => {
                clear(path, listen)?;
                let listener = bind_private(path).map_err(failed)?;
                Ok(Self::Unix(listener, SocketFile(path.clone())))
            }
        }
    }

    /// The address as a client would write it, with the real port.
    pub(super) fn shown(&self, scheme: &str) -> String {
        match self {
            Self::Tcp(listener) => {
                let addr = listener.local_addr().map_or_else(|_| "?".to_owned(), |addr| addr.to_string());
                format!("{scheme}://{addr}")
            }
            Self::Unix(_, file) => format!("unix:{}", file.0.display()),
        }
    }

    /// The next connection.
    pub(super) async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // An answer is written in one piece; nothing is gained by holding its tail back.
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Self::Unix(listener, _) => Ok(Socket::Unix(listener.accept().await?.0)),
        }
    }
}

/// Removes a socket that nobody listens on any more. Anything else is left alone and is an error.
fn clear(path: &Path, listen: &Listen) -> Result<(), ListenError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket { path: path.to_owned() });
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| ListenError::Io { at: listen.to_string(), error })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        _ => Err(ListenError::InUse { at: listen.to_string() }),
    }
}

/// A socket that nobody else could connect to at any moment: it is made in a folder of its own, closed to all others, and
/// moved to its place when its mode is set.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let folder = PathBuf::from(name);
    let made = folder.join("s");
    // Left over from a process that was killed just here.
    drop(std::fs::remove_file(&made));
    drop(std::fs::remove_dir(&folder));
    DirBuilder::new().mode(0o700).create(&folder)?;
    let bound = bind_and_move(&made, path);
    drop(std::fs::remove_file(&made));
    drop(std::fs::remove_dir(&folder));
    bound
}

fn bind_and_move(made: &Path, path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(made)?;
    std::fs::set_permissions(made, std::fs::Permissions::from_mode(SOCKET_MODE))?;
    std::fs::rename(made, path)?;
    Ok(listener)
}
