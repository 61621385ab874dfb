//! Where others can reach the server. The address is one that is not called loopback and yet is: `::ffff:127.0.0.1`.

use serde_json::Value;

use crate::cli_ran::run_alone;
use crate::server::{Options, Server};
use crate::tokens::{EVERYTHING, create, run, with};

const BEYOND: &str = "[::ffff:127.0.0.1]:0";

fn options() -> Options {
    Options::default().set(&format!("listen={BEYOND}")).set("server.plain_http=true")
}

#[test]
fn without_tls_it_takes_a_word_and_without_tokens_nothing_helps() {
    let dir = tempfile::tempdir().expect("a folder");
    let plain = ["serve", "--listen", BEYOND, "--set", "server.plain_http=true"];
    let ran = run_alone(dir.path(), &plain);
    let said = ran.fails(2);
    assert!(said.contains("API token") && said.contains("tagwerk token create"), "{said}");
    create(dir.path(), EVERYTHING);
    let ran = run_alone(dir.path(), &["serve", "--listen", BEYOND]);
    let said = ran.fails(2);
    for word in ["TLS", "--tls-cert", "server.plain_http = true", "127.0.0.1"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn with_both_it_listens_and_opens_to_nobody_when_the_last_token_goes() {
    let dir = tempfile::tempdir().expect("a folder");
    let token = create(dir.path(), EVERYTHING);
    let server = Server::in_dir(dir, options());
    with(&server, &token).get("/jobs").expect(200);
    server.get("/jobs").problem(401, "unauthorized");
    server.get("/livez").expect(200);
    assert!(run(server.dir(), &["revoke", "all"]).status.success());
    // It counts when the token is refused; from then on nobody gets in.
    let begun = std::time::Instant::now();
    while with(&server, &token).get("/jobs").status == 200 {
        assert!(begun.elapsed() < super::PATIENCE, "it still counts");
    }
    for call in ["/jobs", "/stats", "/metrics", "/openapi.json", "/readyz?verbose"] {
        server.get(call).problem(401, "unauthorized");
    }
    assert_eq!(server.get("/readyz").expect(200)["checks"], Value::Null, "bare");
}
