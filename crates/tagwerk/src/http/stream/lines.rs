//! From bytes to numbered lines, in batches.

use std::ops::Range;

use tagwerk_core::limits;

/// Lines that are worked on together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Number and place of each line, without its end; no place: it was too long and is not kept.
    lines: Vec<(u64, Option<Range<usize>>)>,
}

impl Batch {
    /// Number and bytes of each line; no bytes: it was too long.
    pub(super) fn lines(&self) -> impl Iterator<Item = (u64, Option<&[u8]>)> {
        let bytes = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.lines.iter().map(move |(number, range)| (*number, range.as_ref().map(bytes)))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Cuts what comes into lines.
pub(super) struct Lines {
    max_bytes: usize,
    /// The last line whose end has come.
    number: u64,
    batch: Batch,
    /// Where the line begins whose end has not come.
    open: usize,
    /// That line is too long: what comes of it is not kept.
    skipping: bool,
}

impl Lines {
    /// Lines of at most this many bytes, without their ends.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, number: 0, batch: Batch::default(), open: 0, skipping: false }
    }

    /// Takes bytes until the batch is full. Returns how many.
    pub(super) fn push(&mut self, data: &[u8]) -> usize {
        let mut rest = data;
        while !rest.is_empty() && !self.is_full() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
            self.extend(piece);
            rest = behind.split_first().map_or(behind, |(_, behind)| {
                self.close();
                behind
            });
        }
        data.len() - rest.len()
    }

    fn extend(&mut self, piece: &[u8]) {
        if self.batch.bytes.len() - self.open + piece.len() > self.max_bytes {
            self.skipping = true;
            self.batch.bytes.truncate(self.open);
        }
        if !self.skipping {
            self.batch.bytes.extend_from_slice(piece);
        }
    }

    fn close(&mut self) {
        self.number += 1;
        let end = self.batch.bytes.len();
        let place = (!std::mem::take(&mut self.skipping)).then_some(self.open..end);
        self.batch.lines.push((self.number, place));
        self.open = end;
    }

    /// The input has come to its end: what stands after the last line break is a line too.
    pub(super) fn end(&mut self) {
        if self.skipping || self.batch.bytes.len() > self.open {
            self.close();
        }
    }

    /// Whether the batch has to be taken before more bytes are.
    pub(super) fn is_full(&self) -> bool {
        self.batch.lines.len() >= limits::STREAM_BATCH_LINES || self.open >= limits::STREAM_BATCH_BYTES
    }

    /// Whether there are whole lines.
    pub(super) const fn has_lines(&self) -> bool {
        !self.batch.is_empty()
    }

    /// The whole lines so far.
    pub(super) fn take(&mut self) -> Batch {
        let tail = self.batch.bytes.split_off(self.open);
        self.open = 0;
        let next = Batch { bytes: tail, lines: Vec::new() };
        std::mem::replace(&mut self.batch, next)
    }

    /// The first line whose end has not come.
    pub(super) const fn next_line(&self) -> u64 {
        self.number + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes everything and takes each batch as soon as it is full.
    fn all(lines: &mut Lines, data: &[u8]) -> Vec<Batch> {
        let (mut rest, mut batches) = (data, Vec::new());
        while !rest.is_empty() {
            let used = lines.push(rest);
            rest = &rest[used..];
            if lines.is_full() {
                batches.push(lines.take());
            }
        }
        batches
    }

    fn shown(batch: &Batch) -> Vec<(u64, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        batch.lines().map(|(number, bytes)| (number, bytes.map(text))).collect()
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_come() {
        let text = b"a\n\nbb\r\n c \nlast";
        let expected: Vec<(u64, Option<String>)> = [(1, "a"), (2, ""), (3, "bb\r"), (4, " c "), (5, "last")]
            .map(|(number, text)| (number, Some(text.to_owned())))
            .into();
        for size in 1..=text.len() {
            let mut lines = Lines::new(100);
            for piece in text.chunks(size) {
                assert_eq!(lines.push(piece), piece.len());
            }
            assert_eq!(lines.next_line(), 5, "the last line has not ended");
            lines.end();
            assert_eq!(shown(&lines.take()), expected, "in pieces of {size}");
            assert_eq!(lines.next_line(), 6);
        }
    }

    #[test]
    fn a_line_without_its_end_stays_behind() {
        let mut lines = Lines::new(100);
        lines.push(b"a\nhal");
        assert_eq!(shown(&lines.take()), [(1, Some("a".to_owned()))]);
        assert!(!lines.has_lines());
        lines.push(b"f\n");
        assert_eq!(shown(&lines.take()), [(2, Some("half".to_owned()))]);
        lines.end();
        assert!(!lines.has_lines(), "an end after a line break adds no line");
    }

    #[test]
    fn the_longest_line_passes_and_a_longer_one_is_not_held() {
        for size in [1, 3, 7, 100] {
            let mut lines = Lines::new(5);
            for piece in b"12345\n123456\n1234567890\nx\n".chunks(size) {
                lines.push(piece);
                assert!(lines.batch.bytes.len() <= 16, "{}", lines.batch.bytes.len());
            }
            let expected = [(1, Some("12345")), (2, None), (3, None), (4, Some("x"))]
                .map(|(number, text)| (number, text.map(str::to_owned)));
            assert_eq!(shown(&lines.take()), expected);
            lines.push(b"1234567");
            lines.end();
            assert_eq!(shown(&lines.take()), [(5, None)], "too long and without an end");
        }
    }

    #[test]
    fn a_batch_is_full_at_its_lines() {
        let mut lines = Lines::new(100);
        let batches = all(&mut lines, "x\n".repeat(2 * limits::STREAM_BATCH_LINES + 1).as_bytes());
        let sizes: Vec<_> = batches.iter().map(|batch| batch.lines.len()).collect();
        assert_eq!(sizes, [limits::STREAM_BATCH_LINES; 2]);
        assert_eq!(lines.take().lines, [(2 * limits::STREAM_BATCH_LINES as u64 + 1, Some(0..1))]);
    }

    #[test]
    fn a_batch_is_full_at_its_bytes() {
        let line = |bytes: usize| "x".repeat(bytes) + "\n";
        let mut lines = Lines::new(2 * limits::STREAM_BATCH_BYTES);
        let text = [line(limits::STREAM_BATCH_BYTES - 1), line(1), line(7)].concat();
        let batches = all(&mut lines, text.as_bytes());
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].lines.len(), 2, "one byte was missing after the first");
        assert_eq!(lines.take().lines.len(), 1);
    }
}
