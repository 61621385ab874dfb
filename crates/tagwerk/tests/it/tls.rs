//! TLS: who speaks it, what is refused at a start, what a bad client can do, and a certificate that is renewed.

mod beyond;
mod files;
mod gone;
mod handshakes;

use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::cli_ran::{Ran, run, run_alone};
use crate::client::{Answer, read_answer, request};
use crate::server::{JSON, Options, Server};

/// Longer than any wait of the server.
const PATIENCE: Duration = Duration::from_mins(1);

/// Who signs certificates.
struct Authority(Issuer<'static, KeyPair>, String);

impl Authority {
    fn new() -> Self {
        Self::called("the authority of the tests")
    }

    fn called(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self(Issuer::new(params, key), pem)
    }

    /// A certificate for these parameters and its key.
    fn sign(&self, params: &CertificateParams) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.0).expect("a certificate").pem(), key.serialize_pem())
    }
}

fn named(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        .expect("parameters")
}

/// Writes both into this folder.
fn put(dir: &Path, (cert, key): &(String, String)) {
    std::fs::write(dir.join("cert.pem"), cert).expect("a file");
    std::fs::write(dir.join("key.pem"), key).expect("a file");
}

fn options() -> Options {
    Options::default().set("server.tls.cert=cert.pem").set("server.tls.key=key.pem")
}

/// A server with a certificate of this authority, whose own is in `ca.pem`.
fn server_of(authority: &Authority, params: &CertificateParams) -> Server {
    let dir = tempfile::tempdir().expect("a folder");
    put(dir.path(), &authority.sign(params));
    std::fs::write(dir.path().join("ca.pem"), &authority.1).expect("a file");
    Server::in_dir(dir, options())
}

fn server() -> (Authority, Server) {
    let authority = Authority::new();
    let server = server_of(&authority, &named(&["127.0.0.1", "localhost"]));
    (authority, server)
}

/// A connection that trusts this authority.
struct Tls(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Tls {
    fn connect(server: &Server, authority: &Authority) -> std::io::Result<Self> {
        Self::speaking(server, authority, &[])
    }

    fn speaking(server: &Server, authority: &Authority, protocols: &[&[u8]]) -> std::io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(authority.1.as_bytes()).expect("a certificate");
        roots.add(root).expect("an authority");
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let name = ServerName::try_from("localhost").expect("a name");
        let mut session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let mut socket = TcpStream::connect(server.addr())?;
        socket.set_read_timeout(Some(PATIENCE))?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Self(BufReader::new(StreamOwned::new(session, socket))))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("to write");
        self.0.get_mut().flush().expect("to write");
    }

    fn begin(&mut self, call: &str, body: &Value) {
        let addr = self.0.get_ref().sock.peer_addr().expect("an address");
        let sent = if body.is_null() { String::new() } else { body.to_string() };
        self.write(&request(addr, call, &[JSON], sent.as_bytes()));
    }

    fn finish(&mut self, call: &str) -> Answer {
        read_answer(&mut self.0, call).expect("an answer")
    }

    fn send(&mut self, call: &str, body: &Value) -> Answer {
        self.begin(call, body);
        self.finish(call)
    }

    /// The certificate that the server has shown.
    fn shown(&self) -> Vec<u8> {
        let shown = self.0.get_ref().conn.peer_certificates().expect("certificates");
        shown[0].to_vec()
    }
}

fn with_ca<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().copied().chain(["--ca-file", "ca.pem"]).collect()
}

#[test]
fn the_command_line_speaks_https() {
    let (_, server) = server();
    assert!(server.url().starts_with("https://"));
    let made = run(&server, &with_ca(&["enqueue", "t", "--payload", "{\"n\": 1}", "--json"])).json();
    assert_eq!(made["status"], "pending");
    let lines = "{\"type\":\"t\"}\n".repeat(3_000);
    std::fs::write(server.dir().join("jobs.ndjson"), lines).expect("a file");
    run(&server, &with_ca(&["enqueue", "--bulk", "jobs.ndjson"])).expect(0);
    let output = crate::server::tagwerk(server.dir(), &["stats", "--json"])
        .envs([("TAGWERK_URL", server.url().as_str()), ("TAGWERK_CA_FILE", "ca.pem")])
        .output()
        .expect("the binary");
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(stats["counts"]["enqueued"], 3_001);
    run(&server, &["work", "--max-jobs", "2", "--ca-file", "ca.pem", "--", "true"]).expect(0);
    let done = run(&server, &with_ca(&["jobs", "list", "--status", "completed", "--json"])).json();
    assert_eq!(done["jobs"].as_array().expect("jobs").len(), 2);
}

#[test]
fn a_server_that_cannot_prove_who_it_is_gets_nothing() {
    let (_, server) = server();
    let refused = |ran: &Ran, why: &str| {
        let said = ran.fails(3);
        assert!(
            said.contains("no secure connection") && said.contains(why) && said.contains("--ca-file"),
            "{said}"
        );
    };
    let enqueue = ["enqueue", "t"];
    // One of another name, and one that only calls itself the same.
    for authority in [Authority::called("another"), Authority::new()] {
        std::fs::write(server.dir().join("other.pem"), authority.1).expect("a file");
        refused(&run(&server, &["enqueue", "t", "--ca-file", "other.pem"]), "not trusted here");
    }
    let authority = Authority::new();
    let foreign = server_of(&authority, &named(&["other.example"]));
    refused(&run(&foreign, &with_ca(&enqueue)), "for another name");
    // What the server holds was not touched by any of these.
    assert_eq!(run(&server, &with_ca(&["stats", "--json"])).json()["counts"]["enqueued"], 0);
    for (file, why) in [("none.pem", "No such file"), ("key.pem", "BEGIN CERTIFICATE")] {
        let said = run(&server, &["enqueue", "t", "--ca-file", file]);
        assert!(said.fails(2).contains(why) && said.stderr.contains(file), "{said:?}");
    }
}

#[test]
fn who_speaks_the_wrong_one_of_the_two_is_told() {
    let (_, server) = server();
    let answer = server.client().send("POST /jobs", &[JSON], b"{\"type\":\"t\"}");
    let problem = answer.problem(400, "tls-required");
    assert!(problem["detail"].as_str().expect("a text").contains("https://"), "{problem}");
    // One that still sends while it is answered hears it too.
    let long = vec![b' '; 300_000];
    server.client().send("POST /jobs", &[JSON], &long).problem(400, "tls-required");
    let plain_url = server.url().replace("https:", "http:");
    let ran = run_alone(server.dir(), &["stats", "--url", &plain_url]);
    assert!(ran.fails(1).contains("tls-required"), "{ran:?}");
    let plain = Server::start();
    let ran = run_alone(plain.dir(), &["stats", "--url", &plain.url().replace("http:", "https:")]);
    assert!(ran.fails(3).contains("does not speak TLS"), "{ran:?}");
}

#[test]
fn both_versions_of_http_are_behind_it() {
    let (authority, server) = server();
    let mut tls = Tls::speaking(&server, &authority, &[b"h2", b"http/1.1"]).expect("a connection");
    assert_eq!(tls.0.get_ref().conn.alpn_protocol(), Some(&b"h2"[..]));
    // An empty frame of settings (type 4) is answered by the server's.
    tls.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    let mut head = [0; 9];
    std::io::Read::read_exact(&mut tls.0, &mut head).expect("a frame");
    assert_eq!(head[3], 4, "{head:?}");
    let mut tls = Tls::speaking(&server, &authority, &[b"http/1.1"]).expect("a connection");
    assert_eq!(tls.0.get_ref().conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    for n in 0..3 {
        let job = tls.send("POST /jobs", &json!({"type": "t", "payload": n})).expect(201);
        assert_eq!(tls.send(&format!("GET /jobs/{}", job["id"]), &Value::Null).expect(200)["payload"], n);
    }
    assert!(Tls::speaking(&server, &authority, &[b"smtp"]).is_err(), "nothing that it does not speak");
}
