//! What is kept of a command's output: the last line of stdout, the end of stderr. However much it writes, memory is bounded.

/// Bytes of stderr that become the error.
const TAIL_BYTES: usize = 4 * 1024;

/// Something that takes output piece by piece.
pub(super) trait Sink: Send + 'static {
    /// Takes the next piece.
    fn take(&mut self, bytes: &[u8]);
}

/// The end of what was written.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    was_cut: bool,
}

impl Sink for Tail {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Moved rarely, so that many small pieces cost little.
        if self.bytes.len() > 2 * TAIL_BYTES {
            self.cut();
        }
    }
}

impl Tail {
    fn cut(&mut self) {
        let surplus = self.bytes.len().saturating_sub(TAIL_BYTES);
        self.was_cut |= surplus > 0;
        self.bytes.drain(..surplus);
    }

    /// The last 4 KiB as text, cut between characters, without white space at its ends.
    pub(super) fn text(&mut self) -> String {
        self.cut();
        let is_inside = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let start = if self.was_cut {
            self.bytes.iter().take(3).take_while(|byte| is_inside(byte)).count()
        } else {
            0
        };
        String::from_utf8_lossy(&self.bytes[start..]).trim().to_owned()
    }
}

/// The last line that is not blank.
#[derive(Debug)]
pub(super) struct LastLine {
    line: Line,
    last: Line,
    most: usize,
}

/// A line, as far as it may be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    bytes: Vec<u8>,
    pub(super) is_too_long: bool,
}

impl Line {
    fn is_blank(&self) -> bool {
        !self.is_too_long && self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// The text, if it is whole and UTF-8.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes)
            .ok()
            .map(str::trim)
            .filter(|text| !self.is_too_long && !text.is_empty())
    }
}

impl LastLine {
    /// Lines of more than `most` bytes are only noted.
    pub(super) fn new(most: usize) -> Self {
        Self { line: Line::default(), last: Line::default(), most }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.is_blank() {
            self.last = line;
        }
    }

    /// The line.
    pub(super) fn line(&mut self) -> &Line {
        self.end_line();
        &self.last
    }
}

impl Sink for LastLine {
    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            if self.line.bytes.len() + piece.len() > self.most + usize::from(ends) {
                self.line = Line { bytes: Vec::new(), is_too_long: true };
            } else if !self.line.is_too_long {
                self.line.bytes.extend_from_slice(piece);
            }
            if ends {
                self.end_line();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(pieces: &[&[u8]]) -> String {
        let mut tail = Tail::default();
        for piece in pieces {
            tail.take(piece);
        }
        tail.text()
    }

    #[test]
    fn the_end_of_stderr_is_kept() {
        assert_eq!(tail(&[]), "");
        assert_eq!(tail(&[b"a\n", b"b\n"]), "a\nb");
        let long = [b"start".as_slice(), &b"x".repeat(100_000), b"end"].concat();
        let text = tail(&[&long]);
        assert_eq!(text.len(), TAIL_BYTES);
        assert!(text.ends_with("xend"));
        let pieces: Vec<&[u8]> = long.chunks(7).collect();
        assert_eq!(tail(&pieces), text);
    }

    #[test]
    fn it_is_cut_between_characters() {
        let text = tail(&["ü".repeat(TAIL_BYTES).as_bytes(), b"x"]);
        assert_eq!(text, format!("{}x", "ü".repeat(TAIL_BYTES / 2 - 1)));
        assert_eq!(tail(&[b"\xff\xfe ok"]), "\u{fffd}\u{fffd} ok");
    }

    fn last(pieces: &[&[u8]], most: usize) -> (Option<String>, bool) {
        let mut last = LastLine::new(most);
        for piece in pieces {
            last.take(piece);
        }
        let line = last.line();
        (line.text().map(str::to_owned), line.is_too_long)
    }

    #[test]
    fn the_last_line_that_is_not_blank_counts() {
        let text = |text: &str| (Some(text.to_owned()), false);
        assert_eq!(last(&[], 10), (None, false));
        assert_eq!(last(&[b"a\nb"], 10), text("b"));
        assert_eq!(last(&[b"a\nb\n"], 10), text("b"));
        assert_eq!(last(&[b"a\nb\n\n  \r\n"], 10), text("b"));
        assert_eq!(last(&[b"a", b"b", b"\nc", b"d\r\n"], 10), text("cd"));
        assert_eq!(last(&[b"\xff\n"], 10), (None, false));
    }

    #[test]
    fn lines_beyond_the_bound_are_not_kept() {
        assert_eq!(last(&[b"1234567890\n"], 10), (Some("1234567890".to_owned()), false));
        assert_eq!(last(&[b"12345678901\n"], 10), (None, true));
        assert_eq!(last(&[b"123456", b"78901", b"2\n"], 10), (None, true));
        assert_eq!(last(&[b"12345678901\nok\n"], 10), (Some("ok".to_owned()), false));
        assert_eq!(last(&[b"ok\n12345678901"], 10), (None, true));
    }
}
