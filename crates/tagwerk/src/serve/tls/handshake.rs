//! How a connection gets encrypted, or ends.

use std::io;
use std::sync::Arc;

use rustix::net::{RecvFlags, recv};
use tagwerk_api::headers::PROBLEM_JSON;
use tagwerk_api::problem::{Code, Problem};
use tagwerk_core::limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use super::Tls;
use super::crowd::Place;
use super::encrypted::{Encrypted, Half};
use crate::serve::connection::patience;
use crate::serve::socket::{PatientSocket, Socket};

/// How much more of a plain request is read before the connection is closed: closed with something unread, the system would
/// take the answer back.
const PLAIN_REQUEST_MAX_BYTES: u64 = 1024 * 1024;

impl Tls {
    /// Encrypts a connection. `None`: it is over, for whatever reason.
    pub(in crate::serve) async fn encrypt(
        &self,
        socket: Arc<Socket>,
        mut place: Place,
    ) -> Option<(Arc<Encrypted>, Half)> {
        let mut stopping = self.stopping.clone();
        let ended = tokio::select! {
            ended = tokio::time::timeout(patience(limits::HANDSHAKE_MS), self.shake_hands(socket)) => ended,
            _ = stopping.wait_for(|stopping| *stopping) => return None,
            () = place.given_up() => {
                tracing::debug!("too many TLS handshakes are under way; the oldest is given up");
                return None;
            }
        };
        match ended {
            Ok(Ok(encrypted)) => encrypted,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake has failed");
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake has taken too long");
                None
            }
        }
    }

    async fn shake_hands(&self, socket: Arc<Socket>) -> io::Result<Option<(Arc<Encrypted>, Half)>> {
        if socket.wait_for_more().await? == 0 {
            return Ok(None);
        }
        if first_byte(&socket)?.is_ascii_uppercase() {
            refuse_plain(PatientSocket::new(socket)).await?;
            return Ok(None);
        }
        let acceptor = TlsAcceptor::from(self.current());
        let stream = acceptor.accept(PatientSocket::new(Arc::clone(&socket))).await?;
        Ok(Some(Encrypted::new(socket, stream)))
    }
}

/// What the client began with. TLS begins with 22, HTTP without it with the letters of a method.
fn first_byte(socket: &Socket) -> io::Result<u8> {
    let mut byte = [0];
    recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    Ok(byte[0])
}

/// Answers somebody who speaks HTTP without TLS, in that language, and ends.
async fn refuse_plain(mut socket: PatientSocket) -> io::Result<()> {
    let body = serde_json::to_string(&Problem::of(Code::TlsRequired))?;
    let status = Code::TlsRequired.status();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} Bad Request\r\nContent-Type: {PROBLEM_JSON}\r\nContent-Length: {length}\r\nCache-Control: \
         no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    );
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await?;
    tokio::io::copy(&mut socket.take(PLAIN_REQUEST_MAX_BYTES), &mut tokio::io::sink()).await?;
    Ok(())
}
