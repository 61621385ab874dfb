//! HTTP/1.1 as far as a proxy must know it that cuts at the bounds of messages: heads, and where bodies end.
//!
//! Guarantees: a message is read whole or not at all; what is written has a `Content-Length`, whatever framing it came in.
//! Deliberately absent: HTTP/2, upgrades, trailers (they are dropped).

use std::io;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Far above what our server takes.
const HEAD_MAX_BYTES: usize = 256 * 1024;

/// The largest body that the server takes, and some more: it is to refuse what is too large, not we.
const BODY_MAX_BYTES: usize = 80 * 1024 * 1024;

/// What a client may send ahead while it waits for an answer.
pub(super) const AHEAD_MAX_BYTES: usize = 1024 * 1024;

/// A request or an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// The request line or the status line.
    pub(super) first: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Nothing,
    Length(usize),
    Chunked,
    /// With the connection: answers only.
    UntilEnd,
}

impl Message {
    /// Reads a head, without the empty line at its end.
    fn parse(head: &[u8]) -> io::Result<Self> {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default().to_owned();
        let field = |line: &str| {
            let (name, value) = line.split_once(':').ok_or_else(|| bad("a header without a colon"))?;
            Ok((name.to_owned(), value.trim().to_owned()))
        };
        let fields = lines.filter(|line| !line.is_empty()).map(field).collect::<io::Result<_>>()?;
        Ok(Self { first, fields, body: Vec::new() })
    }

    /// The value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether a field says this word.
    fn says(&self, name: &str, word: &str) -> bool {
        let words = self.field(name).unwrap_or_default();
        words.split(',').any(|said| said.trim().eq_ignore_ascii_case(word))
    }

    /// The status of an answer.
    pub(super) fn status(&self) -> u16 {
        self.first.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// Method and target of a request.
    pub(super) fn target(&self) -> (&str, &str) {
        let mut words = self.first.split(' ');
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    /// Whether the connection goes on after it.
    pub(super) fn keeps_alive(&self) -> bool {
        let is_old = self.first.ends_with("HTTP/1.0") || self.first.starts_with("HTTP/1.0");
        !self.says("connection", "close") && (!is_old || self.says("connection", "keep-alive"))
    }

    /// Whether the body is a stream of lines, which may be answered while it comes.
    pub(super) fn is_stream(&self) -> bool {
        self.field("content-type").is_some_and(|kind| kind.starts_with("application/x-ndjson"))
    }

    fn framing(&self) -> io::Result<Framing> {
        if self.says("transfer-encoding", "chunked") {
            return Ok(Framing::Chunked);
        }
        let Some(length) = self.field("content-length") else { return Ok(Framing::Nothing) };
        match length.parse() {
            Ok(length) if length <= BODY_MAX_BYTES => Ok(Framing::Length(length)),
            _ => Err(bad("a Content-Length that cannot be")),
        }
    }

    /// The head alone as it came, with the wish to end the connection after the answer.
    pub(super) fn last_head(&self) -> Vec<u8> {
        let fields = self.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("connection"));
        let lines: Vec<String> = fields.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{}\r\n{}connection: close\r\n\r\n", self.first, lines.concat()).into_bytes()
    }

    /// As it goes over the wire.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let is_framing = |name: &str| ["content-length", "transfer-encoding", "expect"].contains(&name);
        let (framing, others): (Vec<_>, Vec<_>) =
            self.fields.iter().partition(|(name, _)| is_framing(&name.to_ascii_lowercase()));
        let lines: Vec<String> = others.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = if framing.is_empty() && self.body.is_empty() {
            String::new()
        } else {
            format!("content-length: {}\r\n", self.body.len())
        };
        let mut bytes = format!("{}\r\n{}{length}\r\n", self.first, lines.concat()).into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// In order.
    Closed,
    /// As if a machine between had gone.
    Reset,
}

/// The reading side of a connection, read message by message.
pub(super) struct Reader {
    read: OwnedReadHalf,
    /// What was read and does not belong to a message yet.
    buffer: Vec<u8>,
}

/// A connection.
pub(super) struct Wire {
    pub(super) reader: Reader,
    pub(super) write: OwnedWriteHalf,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        // Small messages at once; without it they are only later.
        drop(stream.set_nodelay(true));
        let (read, write) = stream.into_split();
        Self { reader: Reader { read, buffer: Vec::new() }, write }
    }

    /// The body of a request whose head was read.
    pub(super) async fn request_body(&mut self, head: &mut Message) -> io::Result<()> {
        let framing = head.framing()?;
        if head.says("expect", "100-continue") && framing != Framing::Nothing {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        head.body = self.reader.body(framing).await?;
        Ok(())
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write.write_all(bytes).await
    }

    /// Ends it.
    pub(super) fn end(self, end: End) {
        if end == End::Reset {
            // Where that fails it is closed in order, which is a cut too.
            let _ = set_socket_linger(self.write.as_ref(), Some(std::time::Duration::ZERO));
            // A half that is dropped would say goodbye first.
            self.write.forget();
        }
    }

    /// Passes on what comes from either side, until both have ended.
    pub(super) async fn join(self, other: Self) -> io::Result<()> {
        tokio::try_join!(pass(self.reader, other.write), pass(other.reader, self.write)).map(drop)
    }
}

async fn pass(mut from: Reader, mut to: OwnedWriteHalf) -> io::Result<()> {
    to.write_all(&from.buffer).await?;
    tokio::io::copy(&mut from.read, &mut to).await?;
    to.shutdown().await
}

impl Reader {
    /// The next head; `None` when the other side has ended. What belongs to its body is still to be read.
    pub(super) async fn head(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let message = Message::parse(&self.buffer[..end])?;
                self.buffer.drain(..end + 4);
                return Ok(Some(message));
            }
            if self.buffer.len() > HEAD_MAX_BYTES {
                return Err(bad("a head without an end"));
            }
            if self.more().await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(cut()) };
            }
        }
    }

    /// A whole answer to a request with this method.
    pub(super) async fn answer(&mut self, method: &str) -> io::Result<Message> {
        loop {
            let mut message = self.head().await?.ok_or_else(cut)?;
            let status = message.status();
            if (100..200).contains(&status) {
                continue;
            }
            if method == "HEAD" || matches!(status, 204 | 304) {
                return Ok(message);
            }
            let framing = match message.framing()? {
                Framing::Nothing => Framing::UntilEnd,
                framing => framing,
            };
            message.body = self.body(framing).await?;
            return Ok(message);
        }
    }

    async fn body(&mut self, framing: Framing) -> io::Result<Vec<u8>> {
        match framing {
            Framing::Nothing => Ok(Vec::new()),
            Framing::Length(length) => self.take(length).await,
            Framing::UntilEnd => {
                while self.more().await? > 0 {}
                Ok(std::mem::take(&mut self.buffer))
            }
            Framing::Chunked => self.chunks().await,
        }
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| bad("a chunk without a size"))?;
            if size == 0 {
                while !self.line().await?.is_empty() {}
                return Ok(body);
            }
            if size > BODY_MAX_BYTES || body.len() + size > BODY_MAX_BYTES {
                return Err(bad("a body without an end"));
            }
            body.extend(self.take(size).await?);
            self.line().await?;
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 2);
                return Ok(line);
            }
            if self.buffer.len() > HEAD_MAX_BYTES || self.more().await? == 0 {
                return Err(cut());
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            if self.more().await? == 0 {
                return Err(cut());
            }
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// Reads what comes next; 0 at the end. Nothing is lost when it is given up while it waits.
    pub(super) async fn more(&mut self) -> io::Result<usize> {
        self.read.read_buf(&mut self.buffer).await
    }

    /// Bytes that came ahead.
    pub(super) const fn ahead(&self) -> usize {
        self.buffer.len()
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// What is read of these bytes, which come one by one.
    fn read<T>(bytes: &'static [u8], with: impl AsyncFnOnce(&mut Wire) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            let mut other = Wire::new(client);
            let writes = tokio::spawn(async move {
                for byte in bytes {
                    other.send(&[*byte]).await.unwrap();
                }
            });
            let outcome = with(&mut Wire::new(server)).await;
            writes.await.unwrap();
            outcome
        })
    }

    #[test]
    fn requests_end_where_they_say() {
        let bytes = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nX: y\r\n\r\nabc\
            POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x=1\r\nde\r\n1\r\nf\r\n0\r\nT: 1\r\n\r\n\
            GET /c HTTP/1.0\r\n\r\n";
        let seen = read(bytes, async |wire| {
            let mut seen = Vec::new();
            while let Some(mut message) = wire.reader.head().await.unwrap() {
                wire.request_body(&mut message).await.unwrap();
                seen.push(message);
            }
            seen
        });
        let shown: Vec<_> = seen.iter().map(|message| String::from_utf8(message.bytes()).unwrap()).collect();
        assert_eq!(
            shown,
            [
                "POST /a HTTP/1.1\r\nX: y\r\ncontent-length: 3\r\n\r\nabc",
                "POST /b HTTP/1.1\r\ncontent-length: 3\r\n\r\ndef",
                "GET /c HTTP/1.0\r\n\r\n",
            ]
        );
        assert_eq!(seen[0].target(), ("POST", "/a"));
        assert_eq!(seen.iter().map(Message::keeps_alive).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn a_message_that_is_cut_is_none() {
        for bytes in
            [&b"POST /a HTTP/1.1\r\nContent-Le"[..], b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"]
        {
            let outcome = read(bytes, async |wire| {
                let Some(mut message) = wire.reader.head().await? else { return Ok(()) };
                wire.request_body(&mut message).await
            });
            assert!(outcome.is_err());
        }
    }

    #[test]
    fn answers_may_have_no_length_or_no_body() {
        let until_end = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\nall of it";
        let answer = read(until_end, async |wire| wire.reader.answer("POST").await).unwrap();
        assert_eq!((answer.status(), answer.body.as_slice()), (200, &b"all of it"[..]));
        let empty = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
        let answer = read(empty, async |wire| wire.reader.answer("POST").await).unwrap();
        assert_eq!((answer.status(), answer.keeps_alive()), (204, false));
    }
}
