//! A file of jobs in chunks that one request carries.

use std::io::{BufRead, Read, Result};

use tagwerk_client::api::Json;

/// Jobs of a chunk: enough that the trip does not count, few enough that progress shows.
const CHUNK_JOBS: usize = 1_000;

/// Bytes of a chunk: half of what the server takes in one request.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// A job.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) json: Json,
    pub(super) has_key: bool,
}

/// A line that is no job.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) number: u64,
    pub(super) why: String,
}

/// Jobs for one request.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) lines: Vec<Line>,
    pub(super) broken: Vec<Broken>,
    /// The last line that was read.
    pub(super) last: u64,
    /// Bytes of the file that were read.
    pub(super) bytes: u64,
}

/// The lines of a file.
pub(super) struct Lines<R> {
    reader: R,
    number: u64,
    bytes: u64,
    /// A line that did not fit into the chunk before.
    kept: Option<Line>,
}

/// What the jobs of a file have in common.
#[derive(serde::Deserialize)]
struct Probe {
    #[serde(default)]
    idempotency_key: Option<serde_json::Value>,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self { reader, number: 0, bytes: 0, kept: None }
    }

    /// The next chunk; `None` at the end of the file.
    pub(super) fn chunk(&mut self) -> Result<Option<Chunk>> {
        let mut chunk = Chunk::default();
        let mut size = 0;
        if let Some(line) = self.kept.take() {
            size += line.json.as_str().len();
            chunk.lines.push(line);
        }
        while chunk.lines.len() < CHUNK_JOBS && chunk.broken.len() < CHUNK_JOBS {
            match self.next()? {
                None => break,
                Some(Err(broken)) => chunk.broken.push(broken),
                Some(Ok(line)) => {
                    size += line.json.as_str().len() + 1;
                    if size > CHUNK_BYTES {
                        self.kept = Some(line);
                        break;
                    }
                    chunk.lines.push(line);
                }
            }
        }
        chunk.last = self.number - u64::from(self.kept.is_some());
        chunk.bytes = self.bytes;
        let is_over = chunk.lines.is_empty() && chunk.broken.is_empty() && self.kept.is_none();
        Ok((!is_over).then_some(chunk))
    }

    /// The next line that is not blank.
    fn next(&mut self) -> Result<Option<std::result::Result<Line, Broken>>> {
        loop {
            let mut bytes = Vec::new();
            let read = self.reader.by_ref().take(CHUNK_BYTES as u64).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.bytes += read as u64;
            if read == CHUNK_BYTES && bytes.last() != Some(&b'\n') {
                self.bytes += skip_line(&mut self.reader)?;
                let why = format!("longer than {CHUNK_BYTES} bytes; keep large data elsewhere");
                return Ok(Some(Err(Broken { number: self.number, why })));
            }
            if !bytes.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(self.read(bytes)));
            }
        }
    }

    fn read(&self, bytes: Vec<u8>) -> std::result::Result<Line, Broken> {
        let number = self.number;
        let broken = |why: String| Broken { number, why };
        if bytes.starts_with(b"\xef\xbb\xbf") {
            return Err(broken(
                "begins with a byte order mark; save the file as UTF-8 without one".to_owned(),
            ));
        }
        let text = String::from_utf8(bytes).map_err(|_| broken("not UTF-8".to_owned()))?;
        let is_object = text.trim_start().starts_with('{');
        if !is_object {
            let why = "not a JSON object; each line is a job such as {\"type\": \"import\"}";
            return Err(broken(why.to_owned()));
        }
        let not_json = |error| broken(format!("not JSON: {error}"));
        let probe: Probe = serde_json::from_str(text.trim()).map_err(not_json)?;
        let json = Json::from_text(text).map_err(not_json)?;
        Ok(Line { number, json, has_key: probe.idempotency_key.is_some_and(|key| !key.is_null()) })
    }
}

/// Reads to the end of the line and keeps nothing.
fn skip_line(reader: &mut impl BufRead) -> Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let (used, is_over) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(used);
        skipped += used as u64;
        if is_over {
            return Ok(skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the lines of each chunk.
    fn chunks(text: &[u8]) -> Vec<(Vec<u64>, Vec<Broken>)> {
        let mut lines = Lines::new(text);
        let mut all = Vec::new();
        while let Some(chunk) = lines.chunk().unwrap() {
            all.push((chunk.lines.iter().map(|line| line.number).collect(), chunk.broken));
        }
        all
    }

    #[test]
    fn lines_keep_their_numbers_and_bytes() {
        let text = b"\n{\"type\":\"a\", \"payload\":{\"n\":1e400} }\r\n\n  {\"type\":\"b\",\"idempotency_key\":\"k\"}";
        let mut lines = Lines::new(text.as_slice());
        let chunk = lines.chunk().unwrap().unwrap();
        let seen: Vec<_> =
            chunk.lines.iter().map(|line| (line.number, line.json.as_str(), line.has_key)).collect();
        let (a, b) = (r#"{"type":"a", "payload":{"n":1e400} }"#, r#"{"type":"b","idempotency_key":"k"}"#);
        assert_eq!(seen, [(2, a, false), (4, b, true)]);
        assert_eq!((chunk.last, chunk.bytes), (4, text.len() as u64));
        assert!(lines.chunk().unwrap().is_none());
    }

    #[test]
    fn broken_lines_are_named_and_the_rest_goes_on() {
        let text = b"{\"type\":\"a\"}\n{\"type\":\n[1]\n\"x\"\n{\"type\":\"\xff\"}\n{\"type\":\"b\"} {}\n{\"type\":\"c\"}\n";
        let chunks = chunks(text);
        assert_eq!(chunks.len(), 1);
        assert_eq!(chunks[0].0, [1, 7]);
        let broken: Vec<_> = chunks[0].1.iter().map(|broken| broken.number).collect();
        assert_eq!(broken, [2, 3, 4, 5, 6]);
        assert!(chunks[0].1[1].why.contains("not a JSON object"));
        assert!(chunks[0].1[3].why.contains("not UTF-8"));
    }

    #[test]
    fn a_byte_order_mark_is_named() {
        assert!(chunks(b"\xef\xbb\xbf{\"type\":\"a\"}\n")[0].1[0].why.contains("byte order mark"));
    }

    #[test]
    fn chunks_end_at_a_thousand_jobs() {
        let text = "{\"type\":\"a\"}\n".repeat(2_001);
        let sizes: Vec<_> = chunks(text.as_bytes()).iter().map(|(lines, _)| lines.len()).collect();
        assert_eq!(sizes, [1_000, 1_000, 1]);
        let text = "x\n".repeat(1_001);
        let sizes: Vec<_> = chunks(text.as_bytes()).iter().map(|(_, broken)| broken.len()).collect();
        assert_eq!(sizes, [1_000, 1]);
    }

    #[test]
    fn chunks_end_at_four_mebibytes_and_longer_lines_are_skipped() {
        let job = |bytes: usize| format!("{{\"type\":\"{}\"}}\n", "x".repeat(bytes));
        let text = [job(3 << 20), job(2 << 20), job(5 << 20), job(1)].concat();
        let chunks = chunks(text.as_bytes());
        let numbers: Vec<_> = chunks.iter().map(|(lines, _)| lines.clone()).collect();
        assert_eq!(numbers, [vec![1], vec![2, 4]]);
        assert_eq!(chunks[1].1[0].number, 3);
        assert!(chunks[1].1[0].why.contains("longer than"));
    }

    #[test]
    fn an_empty_file_has_no_chunks() {
        assert!(chunks(b"").is_empty());
        assert!(chunks(b"\n \n").is_empty());
    }
}
