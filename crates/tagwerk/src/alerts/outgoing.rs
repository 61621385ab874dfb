//! The one client that calls others. Each call resolves the name, looks at the addresses, connects to one of those that it has
//! looked at, and speaks HTTP/1.1 over a connection of its own.
//!
//! Deliberately absent: redirects (an answer that is one counts as failed), proxies of the environment, cookies, reading of
//! answers, connections that stay open.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::guard;
use super::target::{Scheme, Target};

/// As which we call.
const AGENT: &str = concat!("tagwerk/", env!("CARGO_PKG_VERSION"));

/// Names and connections; tests have others.
pub(super) trait Net: Sync {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Addresses of a name.
    fn resolve(&self, host: &str, port: u16) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;

    /// A connection to an address.
    fn connect(&self, to: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// The system's.
#[derive(Debug)]
pub(super) struct System;

impl Net for System {
    type Stream = TcpStream;

    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(to).await
    }
}

/// Why a call has failed.
#[derive(Debug)]
pub(super) enum CallError {
    /// The guard says no.
    Refused(String),
    /// The other side answered with this.
    Status(StatusCode),
    /// There was no answer.
    NoAnswer(String),
}

/// See the module.
pub(super) struct Outgoing<N> {
    net: N,
    internal_hosts: Vec<String>,
    patience: Duration,
    tls: Arc<ClientConfig>,
}

impl Outgoing<System> {
    /// With the system's names and connections, and with its authorities if one of these targets needs them.
    pub(super) fn new<'a>(
        targets: impl IntoIterator<Item = &'a Target>,
        (internal_hosts, patience): (Vec<String>, Duration),
    ) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        if targets.into_iter().any(|target| target.scheme == Scheme::Https) {
            // Old ones that cannot be read are in every list.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Self::over(System, roots, (internal_hosts, patience))
    }
}

impl<N: Net> Outgoing<N> {
    fn over(
        net: N,
        roots: RootCertStore,
        (internal_hosts, patience): (Vec<String>, Duration),
    ) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { net, internal_hosts, patience, tls: Arc::new(tls) })
    }

    /// One call, within the time that it has. `request` brings method, headers and body.
    pub(super) async fn call(&self, to: &Target, request: Request<Full<Bytes>>) -> Result<(), CallError> {
        let called = tokio::time::timeout(self.patience, self.exchange(to, request)).await;
        let late = || CallError::NoAnswer(format!("no answer within {} s", self.patience.as_secs_f64()));
        let status = called.map_err(|_| late())??;
        if status.is_success() { Ok(()) } else { Err(CallError::Status(status)) }
    }

    async fn exchange(&self, to: &Target, request: Request<Full<Bytes>>) -> Result<StatusCode, CallError> {
        let stream = self.connect(to).await?;
        match to.scheme {
            Scheme::Http => speak(stream, to, request).await,
            Scheme::Https => {
                let name = ServerName::try_from(to.host.clone()).map_err(no_answer)?;
                let tls = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream);
                speak(tls.await.map_err(no_answer)?, to, request).await
            }
        }
    }

    /// What is connected to is what the guard has seen: the name is looked up once.
    async fn connect(&self, to: &Target) -> Result<N::Stream, CallError> {
        let found = match to.host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, to.port)],
            Err(_) => self.net.resolve(&to.host, to.port).await.map_err(no_answer)?,
        };
        let admitted = guard::admit(found, &to.host, &self.internal_hosts).map_err(CallError::Refused)?;
        let mut why = format!("{} has no address", to.host);
        for addr in admitted {
            match self.net.connect(addr).await {
                Ok(stream) => return Ok(stream),
                Err(error) => why = format!("{addr}: {error}"),
            }
        }
        Err(CallError::NoAnswer(why))
    }
}

/// Sends the request and takes the status of its answer.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    to: &Target,
    mut request: Request<Full<Bytes>>,
) -> Result<StatusCode, CallError> {
    *request.uri_mut() = to.path.parse().map_err(no_answer)?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(&to.authority).map_err(no_answer)?);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(no_answer)?;
    let mut answer = pin!(sender.send_request(request));
    // With the answer the connection ends too, so its end says nothing before the answer was asked for.
    let answer = tokio::select! {
        answer = &mut answer => answer,
        ended = connection => match ended {
            Ok(()) => answer.await,
            Err(error) => Err(error),
        },
    };
    answer.map(|answer| answer.status()).map_err(no_answer)
}

fn no_answer(error: impl std::fmt::Display) -> CallError {
    CallError::NoAnswer(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::DuplexStream;

    use super::*;

    /// DNS that answers differently each time, and nobody at any address.
    #[derive(Default)]
    struct Scripted {
        answers: Mutex<Vec<Vec<SocketAddr>>>,
        connected: Mutex<Vec<SocketAddr>>,
    }

    impl Net for &Scripted {
        type Stream = DuplexStream;

        async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
            Ok(self.answers.lock().unwrap().remove(0))
        }

        async fn connect(&self, to: SocketAddr) -> io::Result<DuplexStream> {
            self.connected.lock().unwrap().push(to);
            Err(io::ErrorKind::ConnectionRefused.into())
        }
    }

    async fn call(net: &Scripted, url: &str) -> CallError {
        let outgoing =
            Outgoing::over(net, RootCertStore::empty(), (Vec::new(), Duration::from_secs(9))).unwrap();
        outgoing.call(&Target::read(url).unwrap(), Request::default()).await.unwrap_err()
    }

    fn at(ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().unwrap(), 443)
    }

    /// A name that was public when it was looked at cannot be internal when it is connected to: it is looked up once a try,
    /// and each try is looked at.
    #[tokio::test]
    async fn f114_dns_that_changes_helps_nobody() {
        let net = Scripted::default();
        *net.answers.lock().unwrap() =
            vec![vec![at("1.1.1.1")], vec![at("127.0.0.1")], vec![at("::ffff:10.0.0.1")]];
        assert!(matches!(call(&net, "https://h.example/x").await, CallError::NoAnswer(_)));
        assert_eq!(net.answers.lock().unwrap().len(), 2, "one look-up a try");
        for _ in 0..2 {
            let refused = call(&net, "https://h.example/x").await;
            assert!(matches!(&refused, CallError::Refused(why) if why.contains("internal")), "{refused:?}");
        }
        assert_eq!(*net.connected.lock().unwrap(), [at("1.1.1.1")]);
    }

    #[tokio::test]
    async fn literal_addresses_are_looked_at_too() {
        let net = Scripted::default();
        for url in [
            "http://127.0.0.1/",
            "http://127.0.0.1:8080/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://10.0.0.1/",
            "http://100.64.0.1/",
            "http://[fd00::1]/",
            "http://0.0.0.0/",
            "http://[fe80::1]/",
        ] {
            assert!(matches!(call(&net, url).await, CallError::Refused(_)), "{url}");
        }
        assert!(net.connected.lock().unwrap().is_empty());
    }

    /// Other spellings of an address are names, which the system resolves like any other.
    #[tokio::test]
    async fn odd_spellings_of_loopback_are_resolved_and_looked_at() {
        let outgoing = Outgoing::new([], (Vec::new(), Duration::from_secs(9))).unwrap();
        for url in [
            "http://localhost:9/",
            "http://127.1:9/",
            "http://0x7f000001:9/",
            "http://2130706433:9/",
            "http://0:9/",
        ] {
            let error = outgoing.call(&Target::read(url).unwrap(), Request::default()).await.unwrap_err();
            assert!(matches!(error, CallError::Refused(_)), "{url}: {error:?}");
        }
    }
}
