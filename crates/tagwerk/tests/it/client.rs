//! A small HTTP/1.1 client that can also send what no good client would.

use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::server::JSON;

/// Longer than any wait of the server, so that a hanging test ends with a message.
const PATIENCE: Duration = Duration::from_secs(100);

/// An answer.
#[derive(Clone)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body's bytes.
    pub(crate) body: Vec<u8>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        let shown: String = body.chars().take(2_000).collect();
        write!(f, "{} {:?} {shown}", self.status, self.headers)
    }
}

impl Answer {
    /// The first header with this name (in lower case).
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body as JSON, if the status is this.
    pub(crate) fn expect(&self, status: u16) -> Value {
        self.status_is(status);
        self.json()
    }

    /// Holds it against a status.
    pub(crate) fn status_is(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
    }

    /// The problem, if it has this status and code.
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{problem}");
        problem
    }
}

/// One connection, opened anew when the server has closed it.
pub(crate) struct Client {
    addr: SocketAddr,
    patience: Duration,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// A client that has not connected yet.
    pub(crate) const fn new(addr: SocketAddr) -> Self {
        Self::patient(addr, PATIENCE)
    }

    /// The same, which waits this long for an answer and no longer.
    pub(crate) const fn patient(addr: SocketAddr, patience: Duration) -> Self {
        Self { addr, patience, connection: None }
    }

    /// `GET`
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[], b"")
    }

    /// `POST` of JSON.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string())
    }

    /// `POST` of text that is said to be JSON.
    pub(crate) fn post_text(&mut self, path: &str, body: &str) -> Answer {
        self.send(&format!("POST {path}"), &[JSON], body.as_bytes())
    }

    /// Any `METHOD /path`, headers and body. `Host` and `Content-Length` are added unless given.
    pub(crate) fn send(&mut self, call: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(call, headers, body).unwrap_or_else(|error| panic!("{call}: {error}"))
    }

    /// The same, for a server that may be gone.
    pub(crate) fn try_send(
        &mut self,
        call: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        self.begin(&request(self.addr, call, headers, body))?;
        self.finish(call)
    }

    /// Bytes as they are, and the answer to them.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> std::io::Result<Answer> {
        self.begin(bytes)?;
        self.finish("")
    }

    /// The connection itself.
    pub(crate) fn stream(&mut self) -> std::io::Result<&mut BufReader<TcpStream>> {
        if self.connection.is_none() {
            let stream = TcpStream::connect(self.addr)?;
            stream.set_read_timeout(Some(self.patience))?;
            stream.set_nodelay(true)?;
            self.connection = Some(BufReader::new(stream));
        }
        self.connection.as_mut().ok_or_else(|| std::io::ErrorKind::NotConnected.into())
    }

    /// Sends bytes and does not wait for an answer. A server that refuses a body before it has read it may close while
    /// we still write; its answer is there all the same.
    pub(crate) fn begin(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self.stream()?.get_mut().write_all(bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            other => other,
        }
    }

    /// Reads the answer to what was begun.
    pub(crate) fn finish(&mut self, call: &str) -> std::io::Result<Answer> {
        let answer = read_answer(self.stream()?, call);
        let closes = answer.as_ref().map_or(true, |answer| answer.header("connection") == Some("close"));
        if closes {
            self.connection = None;
        }
        answer
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }
}

/// The bytes of a request.
pub(crate) fn request(addr: SocketAddr, call: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let sized = has("content-length") || has("transfer-encoding");
    let length = (!sized && (!body.is_empty() || call.starts_with('P'))).then(|| body.len().to_string());
    let host = (!has("host")).then(|| addr.to_string());
    let added = [("Host", host), ("Content-Length", length)];
    let added = added.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    let mut head = format!("{call} HTTP/1.1\r\n");
    for (name, value) in added.chain(headers.iter().copied()) {
        head.extend([name, ": ", value, "\r\n"]);
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

/// Reads one answer to this call.
pub(crate) fn read_answer(stream: &mut impl BufRead, call: &str) -> std::io::Result<Answer> {
    let status_line = read_line(stream)?;
    let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no status line: {status_line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            break;
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| std::io::Error::other(format!("no header: {line}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    if call.starts_with("HEAD ") || matches!(status, 100 | 204 | 304) {
        return Ok(answer);
    }
    if let Some(length) = answer.header("content-length") {
        let length: usize = length.parse().map_err(std::io::Error::other)?;
        answer.body = vec![0; length];
        stream.read_exact(&mut answer.body)?;
    } else if answer.header("transfer-encoding") == Some("chunked") {
        loop {
            let size = usize::from_str_radix(&read_line(stream)?, 16).map_err(std::io::Error::other)?;
            let start = answer.body.len();
            answer.body.resize(start + size, 0);
            stream.read_exact(&mut answer.body[start..])?;
            read_line(stream)?;
            if size == 0 {
                break;
            }
        }
    } else {
        stream.read_to_end(&mut answer.body)?;
    }
    Ok(answer)
}

fn read_line(stream: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
}

mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_answer_that_is_cut_anywhere_is_no_answer() {
        let whole = b"HTTP/1.1 200 OK\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nnull";
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("its address");
        for length in 0..=whole.len() {
            let mut client = TcpStream::connect(addr).map(BufReader::new).expect("a connection");
            let (mut server, _) = listener.accept().expect("a connection");
            server.write_all(&whole[..length]).expect("to write");
            drop(server);
            let answer = read_answer(&mut client, "GET /");
            assert_eq!(answer.is_ok(), length == whole.len(), "after {length} bytes: {answer:?}");
        }
    }
}
