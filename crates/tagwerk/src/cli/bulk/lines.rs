//! A file of jobs, one a line, read on a thread of its own: a pipe may take as long as it likes.

use std::io::{BufRead, BufReader, Read, Result};

use tagwerk_client::api::Json;
use tokio::sync::mpsc;

/// No server takes a longer line, so it is not held in memory.
const LINE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes that are handed over at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Pieces read ahead.
const PIECES: usize = 4;

/// A job.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) json: Json,
    pub(super) has_key: bool,
    /// Bytes of the file up to its end.
    pub(super) end: u64,
}

/// A line that is no job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) number: u64,
    pub(super) why: String,
}

/// A line that is not blank.
pub(super) type Entry = std::result::Result<Line, Broken>;

/// Reads on a thread of its own, some pieces ahead. An error is the last that comes.
pub(super) fn read_ahead(from: Box<dyn Read + Send>) -> mpsc::Receiver<Result<Vec<Entry>>> {
    let (sender, receiver) = mpsc::channel(PIECES);
    // It ends with the file, or with the first piece that nobody takes. The program does not wait for it.
    std::thread::spawn(move || {
        let mut lines = Lines::new(from);
        loop {
            let piece = lines.piece();
            let is_last = piece.as_ref().map_or(true, Vec::is_empty);
            if piece.as_ref().is_ok_and(Vec::is_empty) || sender.blocking_send(piece).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

/// The lines of a file.
struct Lines<R> {
    reader: BufReader<R>,
    number: u64,
    bytes: u64,
}

/// What the jobs of a file have in common.
#[derive(serde::Deserialize)]
struct Probe {
    #[serde(default)]
    idempotency_key: Option<serde_json::Value>,
}

impl<R: Read> Lines<R> {
    fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(PIECE_BYTES, reader), number: 0, bytes: 0 }
    }

    /// The next lines: one at least, and as many more as are there. Empty at the end of the file.
    fn piece(&mut self) -> Result<Vec<Entry>> {
        let (mut piece, start) = (Vec::new(), self.bytes);
        while let Some(entry) = self.next()? {
            piece.push(entry);
            if self.bytes - start >= PIECE_BYTES as u64 || !self.reader.buffer().contains(&b'\n') {
                break;
            }
        }
        Ok(piece)
    }

    /// The next line that is not blank.
    fn next(&mut self) -> Result<Option<Entry>> {
        loop {
            let mut bytes = Vec::new();
            let read = self.reader.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut bytes)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.bytes += read as u64;
            if read == LINE_BYTES && bytes.last() != Some(&b'\n') {
                self.bytes += skip_line(&mut self.reader)?;
                let why = format!("longer than {LINE_BYTES} bytes; keep large data elsewhere");
                return Ok(Some(Err(Broken { number: self.number, why })));
            }
            if !bytes.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(self.read(bytes)));
            }
        }
    }

    fn read(&self, bytes: Vec<u8>) -> Entry {
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
        let has_key = probe.idempotency_key.is_some_and(|key| !key.is_null());
        Ok(Line { number, json, has_key, end: self.bytes })
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

    fn entries(text: &[u8]) -> Vec<Entry> {
        let mut lines = Lines::new(text);
        let mut all = Vec::new();
        while let Some(entry) = lines.next().unwrap() {
            all.push(entry);
        }
        all
    }

    fn broken(text: &[u8]) -> Vec<Broken> {
        entries(text).into_iter().filter_map(Entry::err).collect()
    }

    #[test]
    fn lines_keep_their_numbers_and_bytes() {
        let text = b"\n{\"type\":\"a\", \"payload\":{\"n\":1e400} }\r\n\n  {\"type\":\"b\",\"idempotency_key\":\"k\"}";
        let lines: Vec<_> = entries(text).into_iter().map(Entry::unwrap).collect();
        let seen: Vec<_> =
            lines.iter().map(|line| (line.number, line.json.as_str(), line.has_key, line.end)).collect();
        let (a, b) = (r#"{"type":"a", "payload":{"n":1e400} }"#, r#"{"type":"b","idempotency_key":"k"}"#);
        assert_eq!(seen, [(2, a, false, 39), (4, b, true, text.len() as u64)]);
    }

    #[test]
    fn broken_lines_are_named_and_the_rest_goes_on() {
        let text = b"{\"type\":\"a\"}\n{\"type\":\n[1]\n\"x\"\n{\"type\":\"\xff\"}\n{\"type\":\"b\"} {}\n{\"type\":\"c\"}\n";
        let broken = broken(text);
        let numbers: Vec<_> = broken.iter().map(|broken| broken.number).collect();
        assert_eq!(numbers, [2, 3, 4, 5, 6]);
        assert!(broken[1].why.contains("not a JSON object"));
        assert!(broken[3].why.contains("not UTF-8"));
        assert_eq!(entries(text).len(), 7);
    }

    #[test]
    fn a_byte_order_mark_is_named() {
        assert!(broken(b"\xef\xbb\xbf{\"type\":\"a\"}\n")[0].why.contains("byte order mark"));
    }

    #[test]
    fn the_longest_line_passes_and_a_longer_one_is_skipped() {
        let job = |bytes: usize| format!("{{\"type\":\"{}\"}}\n", "x".repeat(bytes - 12));
        let text = [job(LINE_BYTES), job(LINE_BYTES + 1), job(3 * LINE_BYTES), job(20)].concat();
        let entries = entries(text.as_bytes());
        let numbers: Vec<_> = entries.iter().flatten().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 4]);
        assert!(broken(text.as_bytes()).iter().all(|broken| broken.why.contains("longer than")));
        assert_eq!(entries[3].as_ref().unwrap().end, text.len() as u64);
    }

    #[test]
    fn an_empty_file_has_no_lines() {
        assert!(entries(b"").is_empty());
        assert!(entries(b"\n \n").is_empty());
    }

    /// Gives one byte at a time, as a slow pipe does.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let length = self.0.len().min(1);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    #[test]
    fn a_piece_is_handed_over_when_no_whole_line_is_there() {
        let text = "{\"type\":\"a\"}\n".repeat(3);
        let mut slow = Lines::new(Drops(text.as_bytes()));
        for _ in 0..3 {
            assert_eq!(slow.piece().unwrap().len(), 1);
        }
        assert!(slow.piece().unwrap().is_empty());
        let text = "{\"type\":\"a\"}\n".repeat(PIECE_BYTES / 14 * 2);
        let mut fast = Lines::new(text.as_bytes());
        assert!(fast.piece().unwrap().len() > 4_000);
    }
}
