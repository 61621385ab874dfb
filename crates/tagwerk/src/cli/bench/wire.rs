//! A lean HTTP/1.1 client: one request at a time on one connection, and of an answer only what a measurement needs.
//!
//! The client shares the machine with the server it measures, so what it costs itself must stay small.

use std::io;
use std::path::PathBuf;

use tagwerk_client::Address;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use crate::cli::failure::Failure;

/// Room for an answer to begin with; it grows as far as answers do.
const BUFFER_BYTES: usize = 16 * 1024;

/// The server to be measured.
#[derive(Clone, Debug)]
pub(super) struct Target {
    place: Place,
    host: String,
    /// What stands before each path.
    base: String,
}

#[derive(Clone, Debug)]
enum Place {
    Tcp(String),
    Unix(PathBuf),
}

impl Target {
    /// The server at this address.
    pub(super) fn new(address: &Address) -> Result<Self, Failure> {
        if let Some(path) = address.socket() {
            let host = "localhost".to_owned();
            return Ok(Self { place: Place::Unix(path.to_owned()), host, base: String::new() });
        }
        let text = address.to_string();
        if address.is_encrypted() {
            return Err(Failure::usage(
                format!("{text}: bench speaks no TLS, which would be measured with it"),
                "name the server's http://HOST:PORT or unix:PATH",
            ));
        }
        let uri: http::Uri = text.parse().map_err(|error| Failure::usage(format!("{text}: {error}"), ""))?;
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let place = if uri.port().is_some() { host.clone() } else { format!("{host}:80") };
        let base = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { place: Place::Tcp(place), host, base })
    }

    /// Whether only programs of this machine can be there.
    pub(super) fn is_local(&self) -> bool {
        let Place::Tcp(place) = &self.place else { return true };
        let name = place.rsplit_once(':').map_or(place.as_str(), |(name, _)| name);
        let name = name.trim_matches(['[', ']']);
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// A connection.
    pub(super) async fn connect(&self) -> io::Result<Wire> {
        let stream: Box<dyn Stream> = match &self.place {
            Place::Tcp(place) => {
                let stream = TcpStream::connect(place).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Place::Unix(path) => Box::new(UnixStream::connect(path).await?),
        };
        Ok(Wire { stream, buffer: Vec::with_capacity(BUFFER_BYTES), body: Vec::new() })
    }

    /// The bytes of a request with a JSON body.
    pub(super) fn post(&self, path: &str, body: &str) -> String {
        let Self { host, base, .. } = self;
        let length = body.len();
        format!(
            "POST {base}{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: \
             {length}\r\n\r\n{body}"
        )
    }

    /// The bytes of any request without a body, or with one of JSON.
    pub(super) fn request(&self, call: &str, body: Option<&str>) -> String {
        let (method, path) = call.split_once(' ').unwrap_or(("GET", call));
        let Self { host, base, .. } = self;
        let head = format!("{method} {base}{path} HTTP/1.1\r\nHost: {host}\r\n");
        match body {
            None => head + "\r\n",
            Some(body) => format!(
                "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ),
        }
    }

    /// The head of a stream of lines, whose chunks follow.
    pub(super) fn stream_head(&self, path: &str) -> String {
        let Self { host, base, .. } = self;
        format!(
            "POST {base}{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-ndjson\r\n\
             Transfer-Encoding: chunked\r\n\r\n"
        )
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    /// What has come and is not yet read.
    buffer: Vec<u8>,
    body: Vec<u8>,
}

impl Wire {
    /// Sends a request and reads its answer. Returns the status; the body is in [`Wire::body`].
    pub(super) async fn call(&mut self, request: &str) -> io::Result<u16> {
        self.stream.write_all(request.as_bytes()).await?;
        self.finish().await
    }

    /// The body of the last answer.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Sends a part of a request.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Sends a chunk of a streamed body. An empty one ends it.
    pub(super) async fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk).await
    }

    /// Reads the answer to what was sent.
    pub(super) async fn finish(&mut self) -> io::Result<u16> {
        let end = loop {
            match find(&self.buffer, b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.fill().await?,
            }
        };
        let head = Head::read(self.buffer.get(..end).unwrap_or_default())?;
        self.buffer.drain(..end);
        self.body.clear();
        match head.length {
            Some(length) => self.take(length).await?,
            None => self.take_chunks().await?,
        }
        Ok(head.status)
    }

    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.reserve(BUFFER_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Moves this many bytes of what comes to the body.
    async fn take(&mut self, length: usize) -> io::Result<()> {
        while self.buffer.len() < length {
            self.fill().await?;
        }
        self.body.extend_from_slice(self.buffer.get(..length).unwrap_or_default());
        self.buffer.drain(..length);
        Ok(())
    }

    async fn take_chunks(&mut self) -> io::Result<()> {
        loop {
            let end = loop {
                match find(&self.buffer, b"\r\n") {
                    Some(end) => break end,
                    None => self.fill().await?,
                }
            };
            let size = std::str::from_utf8(self.buffer.get(..end).unwrap_or_default()).ok();
            let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
            let size = size.ok_or_else(|| io::Error::other("a chunk without its size"))?;
            self.buffer.drain(..end + 2);
            self.take(size).await?;
            while self.buffer.len() < 2 {
                self.fill().await?;
            }
            self.buffer.drain(..2);
            if size == 0 {
                return Ok(());
            }
        }
    }
}

/// What counts of the head of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// `None`: it comes in chunks.
    length: Option<usize>,
}

impl Head {
    fn read(head: &[u8]) -> io::Result<Self> {
        let text = std::str::from_utf8(head).map_err(io::Error::other)?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("an answer without a status"))?;
        let mut head = Self { status, length: Some(0) };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                head.length = Some(value.trim().parse().map_err(io::Error::other)?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.length = None;
            }
        }
        Ok(head)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::new(&text.parse().unwrap()).unwrap()
    }

    #[test]
    fn only_this_machine_is_local() {
        for text in
            ["http://127.0.0.1:1", "http://127.1.2.3:80", "http://[::1]:7070", "http://LOCALHOST", "unix:/s"]
        {
            assert!(target(text).is_local(), "{text}");
        }
        for text in ["http://10.0.0.1:7070", "http://example.org", "http://localhost.example.org:7070"] {
            assert!(!target(text).is_local(), "{text}");
        }
    }

    #[test]
    fn requests_name_host_and_length() {
        let text = target("http://127.0.0.1:7070/queue/").post("/jobs", "{}");
        assert_eq!(
            text,
            "POST /queue/jobs HTTP/1.1\r\nHost: 127.0.0.1:7070\r\nContent-Type: application/json\r\nContent-Length: \
             2\r\n\r\n{}"
        );
    }

    async fn answer(text: &'static str, then: &'static str) -> (u16, String) {
        let (here, mut there) = tokio::io::duplex(8);
        let mut wire = Wire { stream: Box::new(here), buffer: Vec::new(), body: Vec::new() };
        let writer = tokio::spawn(async move {
            there.write_all(text.as_bytes()).await.unwrap();
            there.write_all(then.as_bytes()).await.unwrap();
        });
        let status = wire.finish().await.unwrap();
        let first = (status, String::from_utf8(wire.body().to_vec()).unwrap());
        if !then.is_empty() {
            assert_eq!(wire.finish().await.unwrap(), 204, "the next answer is whole");
        }
        writer.await.unwrap();
        first
    }

    #[tokio::test]
    async fn answers_with_a_length_and_in_chunks() {
        let next = "HTTP/1.1 204 No Content\r\n\r\n";
        let read = answer("HTTP/1.1 201 Created\r\ncontent-LENGTH: 5\r\n\r\nhello", next).await;
        assert_eq!(read, (201, "hello".to_owned()));
        let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
        assert_eq!(answer(chunks, next).await, (200, "abc0123456789abcdef".to_owned()));
        assert_eq!(answer("HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", "").await, (503, String::new()));
    }
}
