//! The client: how a call is sent, repeated and its answer read.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use tagwerk_api::headers::{JSON, NDJSON, PROBLEM_JSON};
use tagwerk_api::problem::Problem;

use crate::answer::{header, retry_after};
use crate::call::{Call, Repeat};
use crate::error::innermost;
use crate::trust::{self, objection};
use crate::{Address, AddressError, Answer, Error, Retries};

/// What the client calls itself in `User-Agent`.
pub const USER_AGENT: &str = concat!("tagwerk/", env!("CARGO_PKG_VERSION"));

/// An answer of more bytes is not read: the server's largest, a page of jobs with long errors, is well below it.
const ANSWER_MAX_BYTES: usize = 128 * 1024 * 1024;

/// How much of a body that is not understood an error shows.
const EXCERPT_CHARS: usize = 200;

/// A client of one server. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    address: Address,
    retries: Retries,
    timeout: Duration,
}

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    address: Address,
    retries: Retries,
    timeout: Duration,
    connect_timeout: Duration,
    token: Option<Token>,
    authorities: Option<PathBuf>,
}

/// An API token. Shown nowhere.
#[derive(Clone)]
struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl ClientBuilder {
    /// The API token that goes with every call. Default: none.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token(token.into()));
        self
    }

    /// The file (PEM) with the certificates of those who may vouch for a server at `https://`, and nobody else. Default: those
    /// that this system trusts.
    #[must_use]
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.authorities = Some(file.into());
        self
    }

    /// How calls are repeated. Default: [`Retries::default`].
    #[must_use]
    pub const fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// How long an answer may take, beyond what the call itself asks the server to wait. Default: 30 s.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long a connection may take. Default: 5 s.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The client. Fails only if this machine cannot make one, or the token or the authorities are none.
    pub fn build(self) -> Result<Client, Error> {
        let mut http = reqwest::Client::builder()
            .tls_backend_preconfigured(trust::config(&self.address, self.authorities.as_deref())?)
            .user_agent(USER_AGENT)
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(self.connect_timeout)
            .tcp_keepalive(Duration::from_secs(30));
        if let Some(Token(token)) = &self.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Error::BadToken)?;
            value.set_sensitive(true);
            http = http.default_headers(HeaderMap::from_iter([(AUTHORIZATION, value)]));
        }
        #[cfg(unix)]
        if let Some(socket) = self.address.socket() {
            http = http.unix_socket(socket);
        }
        let http = http.build().map_err(|source| Error::Connect {
            address: self.address.to_string(),
            why: innermost(&source),
            source: Box::new(source),
        })?;
        Ok(Client { http, address: self.address, retries: self.retries, timeout: self.timeout })
    }
}

impl Client {
    /// A client of the server at `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`, with the default settings.
    pub fn new(address: &str) -> Result<Self, NewClientError> {
        Ok(Self::builder(address.parse()?).build()?)
    }

    /// Settings for a client.
    #[must_use]
    pub fn builder(address: Address) -> ClientBuilder {
        ClientBuilder {
            address,
            retries: Retries::default(),
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            token: None,
            authorities: None,
        }
    }

    /// The same client, sharing its connections, with other repetitions.
    #[must_use]
    pub fn with_retries(&self, retries: Retries) -> Self {
        Self { retries, ..self.clone() }
    }

    /// Where the server is.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a call, again where that is allowed and useful.
    pub(crate) async fn send<T>(&self, call: Call<T>) -> Result<Answer<T>, Error> {
        let mut tries = 1;
        loop {
            let error = match self.send_once(&call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let again = error.is_retryable() || (call.repeat == Repeat::Safe && error.is_outcome_unknown());
            let wait = self.retries.wait(tries, error.retry_after()).filter(|_| again);
            let Some(wait) = wait else { return Err(error) };
            tries += 1;
            // tidy: sleep because this is the back-off itself.
            tokio::time::sleep(wait).await;
        }
    }

    /// The HTTP client below.
    pub(crate) const fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// An answer whose body is read while it comes, unless it is a problem or nothing of ours.
    pub(crate) async fn streaming(&self, response: reqwest::Response) -> Result<reqwest::Response, Error> {
        let kind = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        if kind.starts_with(NDJSON) {
            return Ok(response);
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.map_err(|error| self.failed(error, self.timeout))?;
        let call = Call::<serde::de::IgnoredAny>::get(String::new());
        match self.read(&call, status, (&headers, text)) {
            Ok(answer) => Err(self.bad_answer(status, excerpt(&answer.text))),
            Err(error) => Err(error),
        }
    }

    /// The connection broke.
    pub(crate) fn broken(&self, source: Box<dyn std::error::Error + Send + Sync>) -> Error {
        Error::Broken { address: self.address.to_string(), why: source.to_string(), source }
    }

    async fn send_once<T>(&self, call: &Call<T>) -> Result<Answer<T>, Error> {
        let timeout = self.timeout + call.wait;
        let mut request =
            self.http.request(call.method.clone(), self.address.url(&call.path)).timeout(timeout);
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, JSON).body(body.clone());
        }
        let failed = |source: reqwest::Error| self.failed(source, timeout);
        let mut response = request.send().await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > ANSWER_MAX_BYTES {
                return Err(self
                    .bad_answer(response.status().as_u16(), format!("more than {ANSWER_MAX_BYTES} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        let status = response.status().as_u16();
        let text = String::from_utf8(body).map_err(|_| self.bad_answer(status, "not UTF-8".to_owned()))?;
        self.read(call, status, (response.headers(), text))
    }

    fn read<T>(&self, call: &Call<T>, status: u16, parts: (&HeaderMap, String)) -> Result<Answer<T>, Error> {
        let (headers, text) = parts;
        let kind = header(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
        if kind.starts_with(PROBLEM_JSON) {
            let problem: Box<Problem> = serde_json::from_str(&text)
                .map_err(|error| self.bad_answer(status, format!("{error} in {}", excerpt(&text))))?;
            return Err(Error::Problem { problem, retry_after: retry_after(headers) });
        }
        // `/readyz` answers in its own form with 503 too.
        if !(200..300).contains(&status) && !kind.starts_with(JSON) {
            return Err(self.bad_answer(status, excerpt(&text)));
        }
        let value = (call.read)(&text)
            .map_err(|error| self.bad_answer(status, format!("{error} in {}", excerpt(&text))))?;
        Ok(Answer::new(value, status, (headers, text)))
    }

    pub(crate) fn failed(&self, source: reqwest::Error, after: Duration) -> Error {
        let address = self.address.to_string();
        let objection = objection(&source);
        let why = innermost(&source);
        let (is_connect, is_timeout) = (source.is_connect(), source.is_timeout());
        // The URL may hold keys and subjects, which belong into no log.
        let source = Box::new(source.without_url());
        if let Some(why) = objection.filter(|_| is_connect) {
            Error::Untrusted { address, why, source }
        } else if is_connect {
            Error::Connect { address, why, source }
        } else if is_timeout {
            Error::Timeout { address, after }
        } else {
            Error::Broken { address, why, source }
        }
    }

    pub(crate) fn bad_answer(&self, status: u16, why: String) -> Error {
        Error::BadAnswer { address: self.address.to_string(), status, why }
    }
}

/// The beginning of a body, on one line.
fn excerpt(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    let start: String = text.chars().take(EXCERPT_CHARS).map(shown).collect();
    let rest = if text.chars().nth(EXCERPT_CHARS).is_some() { "…" } else { "" };
    format!("`{start}{rest}`")
}

/// Why [`Client::new`] made no client.
#[derive(Debug, thiserror::Error)]
pub enum NewClientError {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// This machine cannot make a client.
    #[error(transparent)]
    Build(#[from] Error),
}
