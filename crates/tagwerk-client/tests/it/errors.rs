//! What can go wrong, and what the caller learns.

use std::net::TcpListener;
use std::time::Duration;

use tagwerk_client::api::problem::Code;
use tagwerk_client::{Client, Error, Retries};

use crate::script::{Script, Step, json, problem};

#[tokio::test]
async fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client =
        Client::builder(format!("http://127.0.0.1:{port}").parse().unwrap()).retries(Retries::NONE).build();
    let error = client.unwrap().stats().await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    assert!(error.is_unreachable() && error.is_retryable() && !error.is_outcome_unknown());
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot reach a server at http://127.0.0.1:{port}: Connection refused")),
        "{text}"
    );
}

// On several threads: the script waits until the connection is closed, which is done by another task.
#[tokio::test(flavor = "multi_thread")]
async fn no_answer_in_time() {
    let script = Script::run(vec![Step::Silence]);
    let address = script.client().address().clone();
    let timeout = Duration::from_millis(50);
    let client = Client::builder(address).retries(Retries::NONE).timeout(timeout).build().unwrap();
    let error = client.stats().await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert!(error.is_unreachable() && !error.is_retryable() && error.is_outcome_unknown());
    assert!(error.to_string().contains("within 0.05 s"), "{error}");
    drop(client);
    script.asked();
}

#[tokio::test]
async fn a_problem_keeps_all_that_the_server_says() {
    let script =
        Script::run(vec![problem(Code::Draining, "Retry-After: 70\r\n"), problem(Code::JobNotFound, "")]);
    let client = script.client();
    let error = client.stats().await.unwrap_err();
    assert_eq!((error.code(), error.status()), (Some(Code::Draining), Some(503)));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(70)));
    assert!(error.is_retryable() && !error.is_unreachable());
    let error = client.job(7).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::JobNotFound));
    assert!(!error.is_retryable() && !error.is_outcome_unknown());
    assert!(error.to_string().starts_with("No such job (job-not-found): Check the id."), "{error}");
    script.asked();
}

#[tokio::test]
async fn something_else_listens_there() {
    let page = "Content-Type: text/html\r\n";
    let script = Script::run(vec![
        Step::Answer(404, page, "<html>\n<h1>It works!</h1>".to_owned()),
        json("[1, 2]"),
        Step::Answer(400, "", "{}".to_owned()),
        Step::Answer(301, "Location: http://127.0.0.1:1/\r\n", String::new()),
    ]);
    let client = script.client();
    for status in [404, 200, 400, 301] {
        let error = client.stats().await.unwrap_err();
        assert!(matches!(error, Error::BadAnswer { status: found, .. } if found == status), "{error:?}");
        assert!(error.is_unreachable());
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    script.asked();
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_no_answer() {
    let script = Script::run(vec![Step::Answer(200, "Content-Length: 500\r\n", "{".to_owned())]);
    let client = script.client().with_retries(Retries::NONE);
    let error = client.stats().await.unwrap_err();
    assert!(error.is_unreachable(), "{error:?}");
    script.asked();
}
