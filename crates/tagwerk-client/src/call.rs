//! A call before it is sent.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tagwerk_api::Seconds;

/// Whether a call may be sent again when its answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Twice is the same as once: a read, or something that the server recognises.
    Safe,
    /// Only when it certainly was not done.
    Once,
}

impl Repeat {
    /// Safe if the server recognises the call by something in it.
    pub(crate) const fn if_recognised<T>(mark: Option<&T>) -> Self {
        if mark.is_some() { Self::Safe } else { Self::Once }
    }

    /// Safe if both are.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Safe { other } else { Self::Once }
    }
}

/// Method, path and body of a call, and how its answer is read.
#[derive(Debug)]
pub(crate) struct Call<T> {
    pub(crate) method: Method,
    /// Begins with a slash, percent-encoded, with the query string.
    pub(crate) path: String,
    /// JSON.
    pub(crate) body: Option<String>,
    pub(crate) repeat: Repeat,
    /// How much longer than usual the server may take.
    pub(crate) wait: Duration,
    pub(crate) read: fn(&str) -> Result<T, serde_json::Error>,
}

impl<T: DeserializeOwned> Call<T> {
    /// A read.
    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path, Repeat::Safe)
    }

    /// A call with a JSON body.
    pub(crate) fn post(
        path: String,
        body: &impl Serialize,
        repeat: Repeat,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self { body: Some(serde_json::to_string(body)?), ..Self::new(Method::POST, path, repeat) })
    }

    /// A call without a body, or one whose body is added.
    pub(crate) fn new(method: Method, path: String, repeat: Repeat) -> Self {
        Self {
            method,
            path,
            body: None,
            repeat,
            wait: Duration::ZERO,
            read: |text| serde_json::from_str(text),
        }
    }

    /// The server may take this much longer to answer.
    pub(crate) fn waiting(self, wait: Option<Seconds>) -> Self {
        let ms = wait.map_or(0, |wait| u64::try_from(wait.ms()).unwrap_or(0));
        Self { wait: Duration::from_millis(ms), ..self }
    }
}

impl Call<String> {
    /// A read of plain text.
    pub(crate) fn text(path: &str) -> Self {
        Self { read: |text| Ok(text.to_owned()), ..Self::get(path.to_owned()) }
    }
}
