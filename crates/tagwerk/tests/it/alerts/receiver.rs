//! Somebody who is called: keeps what was sent and answers as it was told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A call as it came.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) line: String,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Call {
    /// A header, which must be there.
    pub(super) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or_else(|| panic!("no {name} in {self:?}"), |(_, value)| value.as_str())
    }
}

/// A connection, plain or not.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A listener on a free port. Its thread ends with the test's process.
pub(super) struct Receiver {
    pub(super) addr: SocketAddr,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Receiver {
    /// Answers each call with the next of these status lines and headers; the last one goes on.
    pub(super) fn answering(answers: &[&str]) -> Self {
        Self::over(answers, |stream| Box::new(stream))
    }

    /// The same over TLS, as `localhost`. Returns the certificate too.
    pub(super) fn encrypted(answers: &[&str]) -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a configuration");
        let config = Arc::new(config);
        let over = move |stream| -> Box<dyn Stream> {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            Box::new(StreamOwned::new(connection, stream))
        };
        (Self::over(answers, over), made.cert.pem())
    }

    fn over(answers: &[&str], over: impl Fn(TcpStream) -> Box<dyn Stream> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("its address");
        let calls = Arc::new(Mutex::new(Vec::new()));
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        let kept = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = over(stream.expect("a connection"));
                let Some(call) = read(&mut BufReader::new(&mut stream)) else { continue };
                let n = {
                    let mut calls = kept.lock().expect("the calls");
                    calls.push(call);
                    calls.len() - 1
                };
                let answer = answers.get(n).or(answers.last()).expect("an answer");
                // The caller may have gone away.
                drop(write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n"));
            }
        });
        Self { addr, calls }
    }

    /// What came so far.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("the calls").clone()
    }
}

fn read(stream: &mut impl BufRead) -> Option<Call> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let split =
        |line: &String| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers: Vec<_> = lines.iter().skip(1).filter_map(split).collect();
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(0, |(_, length)| length.parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Call { line: lines.first()?.clone(), headers, body: String::from_utf8(body).expect("text") })
}
