//! Lines that were read and are not yet settled, in order.

use std::collections::VecDeque;

use super::lines::Line;

/// Lines that are on their way at most: some batches of the server.
const LINES: usize = 8_192;

/// Their bytes.
const BYTES: usize = 4 * 1024 * 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Window {
    lines: VecDeque<Line>,
    bytes: usize,
    /// How many of them have been sent on this stream.
    sent: usize,
}

impl Window {
    pub(super) fn push(&mut self, line: Line) {
        self.bytes += line.json.as_str().len();
        self.lines.push_back(line);
    }

    /// The next line to be sent, which counts as sent.
    pub(super) fn unsent(&mut self) -> Option<&Line> {
        let line = self.lines.get(self.sent)?;
        self.sent += 1;
        Some(line)
    }

    /// A new stream: everything is to be sent again.
    pub(super) const fn send_again(&mut self) {
        self.sent = 0;
    }

    /// The first line that was sent is settled.
    pub(super) fn settled(&mut self) -> Option<Line> {
        self.sent = self.sent.checked_sub(1)?;
        let line = self.lines.pop_front()?;
        self.bytes -= line.json.as_str().len();
        Some(line)
    }

    /// Whether further lines have to wait. One line always fits.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() >= LINES || self.bytes >= BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether all lines that were sent may be sent again although nobody knows whether they are in.
    pub(super) fn all_have_keys(&self) -> bool {
        self.lines.iter().take(self.sent).all(|line| line.has_key)
    }

    /// Number of the first line.
    pub(super) fn first(&self) -> Option<u64> {
        self.lines.front().map(|line| line.number)
    }
}

#[cfg(test)]
mod tests {
    use tagwerk_client::api::Json;

    use super::*;

    fn line(number: u64, bytes: usize) -> Line {
        let json = Json::from_text(format!("\"{}\"", "x".repeat(bytes - 2))).unwrap();
        Line { number, json, has_key: true, end: 0 }
    }

    #[test]
    fn lines_are_settled_in_order_and_sent_again_after_a_break() {
        let mut window = Window::default();
        for number in 1..=3 {
            window.push(line(number, 10));
        }
        assert_eq!(window.unsent().map(|line| line.number), Some(1));
        assert_eq!(window.unsent().map(|line| line.number), Some(2));
        assert_eq!(window.settled().map(|line| line.number), Some(1));
        window.send_again();
        let sent: Vec<_> = std::iter::from_fn(|| window.unsent().map(|line| line.number)).collect();
        assert_eq!(sent, [2, 3]);
        assert_eq!(window.first(), Some(2));
        assert!(window.settled().is_some() && window.settled().is_some());
        assert!(window.settled().is_none() && window.is_empty());
        assert_eq!(window.bytes, 0);
    }

    #[test]
    fn it_is_full_at_its_lines_and_at_its_bytes() {
        let mut window = Window::default();
        for number in 1..LINES as u64 {
            window.push(line(number, 10));
        }
        assert!(!window.is_full());
        window.push(line(0, 10));
        assert!(window.is_full());
        let mut window = Window::default();
        window.push(line(1, BYTES - 1));
        assert!(!window.is_full());
        window.push(line(2, 2));
        assert!(window.is_full());
    }

    #[test]
    fn only_lines_that_were_sent_need_a_key_to_be_sent_again() {
        let mut window = Window::default();
        window.push(line(1, 10));
        window.push(Line { has_key: false, ..line(2, 10) });
        assert!(window.unsent().is_some() && window.all_have_keys());
        assert!(window.unsent().is_some() && !window.all_have_keys());
    }
}
