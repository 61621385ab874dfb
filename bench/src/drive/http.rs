//! HTTP/1.1 over a kept connection, as little as a client can do: a request made ready is written, the answer is read
//! to its end. Nothing but status, length and body is looked at.

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::pump::Connect;

/// A connection.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    body: Vec<u8>,
}

/// The head of an answer.
struct Head {
    status: u16,
    bytes: usize,
    /// `None` is a chunked body.
    length: Option<usize>,
}

/// A request as it goes over the wire.
pub(super) fn request(method: &str, path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(method, path, kind, body.len());
    request.extend_from_slice(body);
    request
}

/// The head of a request with a body of that length.
pub(super) fn head(method: &str, path: &str, kind: &str, length: usize) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    )
    .into_bytes()
}

impl Connect for Connection {
    async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024), body: Vec::new() })
    }
}

impl Connection {
    /// Writes a request and reads its answer: status and body.
    pub(super) async fn call(&mut self, request: &[u8]) -> anyhow::Result<(u16, &[u8])> {
        self.send(request).await?;
        self.answer().await
    }

    /// Writes a request, or a part of one.
    pub(super) async fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(request).await.context("the server does not read")
    }

    /// Reads an answer.
    pub(super) async fn answer(&mut self) -> anyhow::Result<(u16, &[u8])> {
        let head = loop {
            if let Some(head) = parse(&self.buffer)? {
                break head;
            }
            self.more().await?;
        };
        self.body.clear();
        self.buffer.drain(..head.bytes);
        match head.length {
            Some(length) => self.take(length).await?,
            None => while self.chunk().await? {},
        }
        Ok((head.status, &self.body))
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        let count = self.stream.read_buf(&mut self.buffer).await.context("no answer")?;
        anyhow::ensure!(count > 0, "the server has closed the connection");
        Ok(())
    }

    /// Moves that many bytes to the body.
    async fn take(&mut self, length: usize) -> anyhow::Result<()> {
        while self.buffer.len() < length {
            self.more().await?;
        }
        self.body.extend(self.buffer.drain(..length));
        Ok(())
    }

    /// Moves a chunk to the body; false at the last one.
    async fn chunk(&mut self) -> anyhow::Result<bool> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                break end;
            }
            self.more().await?;
        };
        let size = std::str::from_utf8(&self.buffer[..end])?;
        let size = usize::from_str_radix(size.trim(), 16).context("not the size of a chunk")?;
        self.buffer.drain(..end + 2);
        self.take(size).await?;
        while self.buffer.len() < 2 {
            self.more().await?;
        }
        self.buffer.drain(..2);
        Ok(size > 0)
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// The head, once it is there as a whole.
fn parse(buffer: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = find(buffer, b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&buffer[..end])?;
    let status = text.get(9..12).and_then(|status| status.parse().ok()).context("not an answer in HTTP")?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Ok(Some(Head { status, bytes: end + 4, length }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn answers(text: &'static str) -> anyhow::Result<Vec<(u16, String)>> {
        super::super::runtime()?.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?.to_string();
            let serve = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await?;
                let mut request = [0; 256];
                for piece in text.as_bytes().chunks(7) {
                    stream.write_all(piece).await?;
                    stream.flush().await?;
                    tokio::task::yield_now().await;
                }
                stream.read(&mut request).await
            });
            let mut connection = Connection::open(&address).await?;
            let mut seen = Vec::new();
            for _ in 0..2 {
                let (status, body) = connection.answer().await?;
                seen.push((status, String::from_utf8_lossy(body).into_owned()));
            }
            drop(connection);
            serve.await??;
            Ok(seen)
        })
    }

    #[test]
    fn bodies_with_a_length_and_in_chunks_are_read_to_their_end() -> anyhow::Result<()> {
        let text = "HTTP/1.1 201 Created\r\nContent-Length: 5\r\nx: y\r\n\r\nhello\
                    HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let seen = answers(text)?;
        assert_eq!(seen, [(201, "hello".to_owned()), (200, "abcde".to_owned())]);
        Ok(())
    }
}
