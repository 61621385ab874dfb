//! Streams of jobs: what comes back is read as it is, and what breaks is told as it is.

use tagwerk_client::Error;
use tagwerk_client::api::answer::StreamLine;
use tagwerk_client::api::problem::Code;

use crate::script::{Script, Step, problem};

fn lines(body: &str) -> Step {
    Step::Answer(200, "Content-Type: application/x-ndjson\r\n", body.to_owned())
}

const STORED: &str = r#"{"line":1,"status":201,"id":7,"payload_differs":false,"replaced":null}"#;
const REFUSED: &str = r#"{"line":2,"status":400,"problem":{"type":"urn:tagwerk:problem:invalid-json","title":"t","status":400,"detail":"d","code":"invalid-json","retryable":false}}"#;
const END: &str = r#"{"done":true,"created":1,"existing":0,"refused":1}"#;

#[tokio::test]
async fn every_kind_of_line_is_read_and_the_end_is_the_end() {
    let script = Script::run(vec![lines(&format!("{STORED}\n{REFUSED}\n{END}\n"))]);
    let (mut jobs, mut answers) = script.client().stream_jobs();
    jobs.send("{\"type\":\"t\"}").await.unwrap();
    jobs.finish().await.unwrap();
    assert!(matches!(answers.next().await, Ok(Some(StreamLine::Stored(stored))) if stored.id == 7));
    assert!(matches!(answers.next().await, Ok(Some(StreamLine::Refused(refused))) if refused.line == 2));
    assert!(matches!(answers.next().await, Ok(Some(StreamLine::End(end))) if end.done && end.refused == 1));
    assert!(matches!(answers.next().await, Ok(None)));
    let asked = script.asked();
    assert_eq!(asked[0].line, "POST /jobs/bulk?results=all");
    assert!(asked[0].head.contains("content-type: application/x-ndjson"), "{}", asked[0].head);
}

#[tokio::test]
async fn an_answer_without_its_last_line_is_broken() {
    for body in [format!("{STORED}\n"), format!("{STORED}\n{{\"done\":tr")] {
        let script = Script::run(vec![lines(&body)]);
        let (jobs, mut answers) = script.client().stream_jobs();
        drop(jobs);
        assert!(matches!(answers.next().await, Ok(Some(StreamLine::Stored(_)))));
        let error = answers.next().await.unwrap_err();
        assert!(matches!(error, Error::Broken { .. }) && error.is_outcome_unknown(), "{error}");
        assert!(matches!(answers.next().await, Ok(None)));
    }
}

#[tokio::test]
async fn a_stream_that_is_refused_as_a_whole_is_a_problem() {
    let script = Script::run(vec![problem(Code::Overloaded, "Retry-After: 1\r\n")]);
    let (jobs, mut answers) = script.client().stream_jobs();
    drop(jobs);
    let error = answers.next().await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Overloaded));
    assert!(error.is_retryable() && error.retry_after().is_some());
}

#[tokio::test]
async fn what_is_no_stream_of_ours_is_told_so() {
    for step in [lines("hello\n"), Step::Answer(200, "Content-Type: text/html\r\n", "<p>".to_owned())] {
        let script = Script::run(vec![step]);
        let (jobs, mut answers) = script.client().stream_jobs();
        drop(jobs);
        assert!(matches!(answers.next().await, Err(Error::BadAnswer { .. })));
    }
}
