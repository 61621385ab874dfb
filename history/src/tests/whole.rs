//! Histories as files.

use super::story::{Story, fresh};
use crate::{History, LogError};

#[test]
fn a_file_holds_the_same_history() {
    let mut story = Story::default().enqueued(0, fresh()).missing(100, 1);
    story.history.rules.stopped_ns = vec![5];
    let mut bytes = Vec::new();
    story.history.write(&mut bytes).expect("memory");
    assert_eq!(String::from_utf8_lossy(&bytes).lines().count(), 3, "a line each");
    assert_eq!(History::read(bytes.as_slice()).expect("a history"), story.history);
}

#[test]
fn what_is_no_history_is_named_by_its_line() {
    let error = History::read("\n{\"client\": 1}\n".as_bytes()).expect_err("no call");
    assert!(matches!(error, LogError::Line(2, _)), "{error}");
    assert!(error.to_string().starts_with("line 2 is neither"), "{error}");
}
