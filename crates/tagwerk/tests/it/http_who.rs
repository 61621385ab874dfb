//! Who may call a server without API tokens: programs on this machine, directly, and nobody else.

use serde_json::json;

use crate::server::{JSON, Options, Server, tagwerk};

const BODY: &[u8] = b"{\"type\":\"t\"}";

#[test]
fn hosts_that_are_not_ours_are_refused() {
    let server = Server::with(Options::default().set("server.hosts=jobs.example,Other.Example"));
    let port = server.addr().port();
    let mut client = server.client();
    for known in
        ["127.0.0.1", "localhost", "LOCALHOST:1", "[::1]", "[::1]:9", "jobs.example", "other.example:80"]
    {
        client.send("GET /jobs", &[("Host", known)], b"").expect(200);
    }
    for unknown in
        ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "0.0.0.0", "a@localhost", "*"]
    {
        let with_port = if unknown.is_empty() { String::new() } else { format!("{unknown}:{port}") };
        for method in ["GET", "POST", "DELETE", "OPTIONS", "HEAD"] {
            let answer = client.send(&format!("{method} /jobs"), &[("Host", &with_port), JSON], BODY);
            assert_eq!(answer.status, 421, "{method} {unknown}");
        }
        client.send("GET /livez", &[("Host", &with_port)], b"").problem(421, "unknown-host");
    }
    assert_eq!(server.get("/stats").expect(200)["counts"]["enqueued"], 0);
}

#[test]
fn a_request_names_one_host() {
    let server = Server::start();
    for head in [
        "GET /jobs HTTP/1.1\r\n\r\n",
        "GET /jobs HTTP/1.0\r\n\r\n",
        "GET /jobs HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        "GET /jobs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        "GET http://evil.example/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET http://localhost/jobs HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    ] {
        server.client().raw(head.as_bytes()).expect("an answer").problem(421, "unknown-host");
    }
    let absolute = "GET http://localhost/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n";
    server.client().raw(absolute.as_bytes()).expect("an answer").expect(200);
}

#[test]
fn pages_of_other_origins_change_nothing() {
    let server = Server::start();
    let own = format!("http://{}", server.addr());
    let post = |header: (&str, &str)| server.client().send("POST /jobs", &[JSON, header], BODY);
    for header in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1"),
        ("Origin", "http://localhost:7070"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        post(header).problem(403, "cross-origin");
        let answer = server.client().send("GET /jobs", &[header], b"");
        answer.expect(200);
        assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "no CORS");
        for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
            server
                .client()
                .send(&format!("{method} /types/t"), &[JSON, header], b"{}")
                .problem(403, "cross-origin");
        }
    }
    for header in [("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "none")] {
        post(header).expect(201);
    }
    let preflight = server.client().send(
        "OPTIONS /jobs",
        &[("Origin", &own), ("Access-Control-Request-Method", "POST")],
        b"",
    );
    assert!(!preflight.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "{preflight:?}");
    // A form of a page can only send these; without the header a browser adds, the media type stops it.
    for media in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let answer = server.client().send("POST /jobs", &[("Content-Type", media)], BODY);
        answer.problem(415, "unsupported-media-type");
    }
}

#[test]
fn a_proxy_does_not_make_an_open_server_public() {
    let server = Server::start();
    for (name, value) in [
        ("Forwarded", "for=203.0.113.9"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Host", "localhost"),
        ("X-Forwarded-Proto", "https"),
        ("x-real-ip", "127.0.0.1"),
        ("Via", "1.1 proxy"),
    ] {
        for call in ["GET /jobs", "POST /jobs", "GET /livez", "GET /nope", "OPTIONS /jobs"] {
            let answer = server.client().send(call, &[JSON, (name, value)], b"");
            let problem = answer.problem(403, "proxied-without-token");
            let detail = problem["detail"].as_str().expect("a detail").to_lowercase();
            assert!(detail.contains(&name.to_lowercase()), "{detail}");
        }
    }
}

/// After a patch release a dashboard could be reached from outside although the default was local only.
#[test]
fn f112_no_spelling_of_a_path_gets_around_the_guards() {
    let server = Server::start();
    let document = server.get("/openapi.json").expect(200);
    let mut paths: Vec<String> = document["paths"]
        .as_object()
        .expect("paths")
        .keys()
        .map(|path| path.replace(['{', '}'], ""))
        .collect();
    paths.extend(["//jobs", "/jobs/..;/", "/jobs/", "/", "/jobs/%2e%2e/", "/ui/", "//"].map(str::to_owned));
    let foreign = [("Host", "evil.example")];
    let proxied = [("X-Forwarded-For", "127.0.0.1"), ("Host", "localhost")];
    let page = [("Origin", "http://evil.example"), ("Host", "localhost")];
    let mut client = server.client();
    for path in &paths {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let call = format!("{method} {path}");
            assert_eq!(client.send(&call, &foreign, b"").status, 421, "{call}");
            assert_eq!(client.send(&call, &proxied, b"").status, 403, "{call}");
            if !matches!(method, "GET" | "HEAD") {
                assert_eq!(client.send(&call, &page, b"").status, 403, "{call}");
            }
        }
    }
}

#[test]
fn every_answer_tells_browsers_not_to_guess_and_nobody_to_keep_it() {
    let server = Server::start();
    for call in ["GET /jobs", "GET /nope", "PUT /jobs", "GET /livez", "GET /metrics"] {
        let answer = server.client().send(call, &[], b"");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{call}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{call}");
    }
    let foreign = server.client().send("GET /jobs", &[("Host", "evil.example")], b"");
    assert_eq!(foreign.header("x-content-type-options"), Some("nosniff"));
}

/// A server was open on all addresses by default, with a login check that a look-alike domain passed.
#[test]
fn f111_it_refuses_to_listen_where_others_could_reach_it() {
    let dir = tempfile::tempdir().expect("a folder");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7070"] {
        let output = tagwerk(dir.path(), &["serve", "--listen", address]).output().expect("the binary");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{address}: {said}");
        assert!(said.contains("API token") && said.contains("127.0.0.1"), "{said}");
        assert!(!dir.path().join("tagwerk.db").exists(), "nothing was opened");
    }
}

#[test]
fn two_of_a_header_that_decides_are_none() {
    let server = Server::start();
    let headers = [JSON, ("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    server.client().send("POST /jobs", &headers, BODY).problem(422, "invalid-request");
    let id = server.post("/jobs", &json!({"type": "t"})).expect(201)["id"].clone();
    let headers = [JSON, ("If-Match", "1"), ("If-Match", "2")];
    server.client().send(&format!("POST /jobs/{id}/cancel"), &headers, b"").problem(422, "invalid-request");
}
