//! Certificates and keys that cannot serve, at a start and when they are renewed.

use std::time::Instant;

use rcgen::date_time_ymd;

use super::{Authority, PATIENCE, Tls, named, put, server};
use crate::cli_ran::run_alone;
use crate::server::Server;

#[test]
fn what_cannot_serve_is_refused_at_the_start_and_says_what_to_do() {
    let dir = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a file");
    put(dir.path(), &authority.sign(&named(&["localhost"])));
    write("other-key.pem", &authority.sign(&named(&["localhost"])).1);
    let mut past = named(&["localhost"]);
    (past.not_before, past.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 2, 3));
    let (cert, key) = authority.sign(&past);
    write("old.pem", &cert);
    write("old-key.pem", &key);
    let mut coming = named(&["localhost"]);
    (coming.not_before, coming.not_after) = (date_time_ymd(4000, 1, 1), date_time_ymd(4000, 2, 3));
    let (cert, key) = authority.sign(&coming);
    write("coming.pem", &cert);
    write("coming-key.pem", &key);
    write("empty.pem", "");
    write("spoilt.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    write("cut.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    write("locked.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    write("no-key.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    write("long.pem", &" ".repeat(2 * 1024 * 1024));
    for (cert, key, says) in [
        ("cert.pem", "", &["server.tls.key is not set", "--tls-key"][..]),
        ("", "key.pem", &["server.tls.cert is not set", "--tls-cert"]),
        ("none.pem", "key.pem", &["cannot read none.pem (server.tls.cert)", "No such file"]),
        ("cert.pem", "none.pem", &["cannot read none.pem (server.tls.key)"]),
        (".", "key.pem", &["cannot read ."]),
        ("empty.pem", "key.pem", &["empty.pem", "BEGIN CERTIFICATE"]),
        ("key.pem", "key.pem", &["key.pem", "BEGIN CERTIFICATE"]),
        ("spoilt.pem", "key.pem", &["spoilt.pem", "certificate"]),
        ("cut.pem", "key.pem", &["cut.pem", "certificate"]),
        ("cert.pem", "cert.pem", &["cert.pem (server.tls.key)", "BEGIN PRIVATE KEY"]),
        ("cert.pem", "locked.pem", &["locked.pem", "without its password"]),
        ("cert.pem", "no-key.pem", &["no-key.pem", "private key"]),
        ("cert.pem", "other-key.pem", &["other-key.pem does not belong to the certificate in cert.pem"]),
        ("old.pem", "old-key.pem", &["old.pem has expired at 2020-02-03T00:00:00Z", "renew"]),
        ("coming.pem", "coming-key.pem", &["coming.pem is not valid before 4000-01-01T00:00:00Z", "clock"]),
        ("long.pem", "key.pem", &["long.pem", "more than"]),
    ] {
        let flags =
            [("--tls-cert", cert), ("--tls-key", key)].into_iter().filter(|(_, file)| !file.is_empty());
        let args: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"]
            .into_iter()
            .chain(flags.flat_map(|(flag, file)| [flag, file]))
            .collect();
        let ran = run_alone(dir.path(), &args);
        let said = ran.fails(2);
        assert!(says.iter().all(|says| said.contains(says)), "{cert} {key}: {said}");
        assert!(!dir.path().join("tagwerk.db").exists(), "nothing was opened: {said}");
    }
    let args = ["serve", "--listen", "unix:s", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let ran = run_alone(dir.path(), &args);
    assert!(ran.fails(2).contains("Unix socket"), "{ran:?}");
}

/// Returns when the log says this so many times.
fn logged(server: &Server, text: &str, times: usize) {
    let begun = Instant::now();
    while server.log().matches(text).count() < times {
        assert!(begun.elapsed() < PATIENCE, "{text}: {}", server.log());
        std::thread::yield_now();
    }
}

#[test]
fn a_renewed_certificate_serves_from_the_signal_on_and_a_bad_one_never() {
    let (authority, server) = server();
    let mut before = Tls::connect(&server, &authority).expect("a connection");
    let first = before.shown();
    for (cert, key) in [("", ""), ("x", "y")] {
        put(server.dir(), &(cert.to_owned(), key.to_owned()));
        let known = server.log().matches("the certificate was not renewed").count();
        server.signal("HUP");
        logged(&server, "the certificate was not renewed", known + 1);
        assert_eq!(Tls::connect(&server, &authority).expect("a connection").shown(), first);
    }
    put(server.dir(), &authority.sign(&named(&["localhost"])));
    server.signal("HUP");
    logged(&server, "the certificate is used", 2);
    let second = Tls::connect(&server, &authority).expect("a connection").shown();
    assert_ne!(second, first);
    // Who was in stays in.
    before.send("GET /livez", &serde_json::Value::Null).expect(200);
    assert!(!server.log().contains("PRIVATE KEY"));
}

#[test]
fn a_certificate_that_ends_soon_and_a_key_that_all_may_read_are_told_in_the_log() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().expect("a folder");
    let authority = Authority::new();
    let mut params = named(&["localhost"]);
    params.not_after = std::time::SystemTime::now().checked_add(PATIENCE * 60 * 24).expect("a day").into();
    put(dir.path(), &authority.sign(&params));
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(dir.path().join("key.pem"), mode(0o644)).expect("a mode");
    let mut server = Server::in_dir(dir, super::options());
    assert!(server.log().contains("expires soon"), "{}", server.log());
    assert_eq!(server.log().matches("may read the private key").count(), 1, "{}", server.log());
    std::fs::set_permissions(server.dir().join("key.pem"), mode(0o600)).expect("a mode");
    server.restart();
    assert_eq!(server.log().matches("may read the private key").count(), 1, "{}", server.log());
}
