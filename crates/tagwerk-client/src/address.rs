//! Where the server is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use reqwest::Url;

/// Where the server is: `http://HOST:PORT` or `https://…`, with or without a path in front of all calls, or `unix:PATH` for a
/// socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// What stands before the path of every call, without a slash at its end.
    base: String,
    socket: Option<PathBuf>,
}

/// Why a text is not the address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Another scheme, or none.
    #[error(
        "`{0}` is not an address: write http://HOST:PORT such as http://127.0.0.1:7070, https://HOST:PORT, or unix:PATH"
    )]
    Scheme(String),
    /// Not a URL.
    #[error("`{text}` is not an address ({why}): write http://HOST:PORT such as http://127.0.0.1:7070")]
    Malformed {
        /// What was given.
        text: String,
        /// What the parser says.
        why: String,
    },
    /// A user name, password, query or fragment: nothing that this client would send. The text is not shown.
    #[error("the address must not carry a user name, password, `?` or `#`: write http://HOST:PORT")]
    Surplus,
    /// `unix:` without a path.
    #[error("unix: needs the path of a socket, such as unix:/run/tagwerk.sock")]
    NoPath,
}

impl Address {
    /// The URL of a call. `path` begins with a slash and is percent-encoded.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.base.starts_with("https:")
    }

    /// The socket, for a server that listens on one.
    #[must_use]
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(path) => write!(f, "unix:{}", path.display()),
            None => f.write_str(&self.base),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(AddressError::NoPath);
            }
            // The host is for the `Host` header only.
            return Ok(Self { base: "http://localhost".to_owned(), socket: Some(path.into()) });
        }
        if !text.contains("://") {
            return Err(AddressError::Scheme(text.to_owned()));
        }
        let malformed =
            |why: &dyn fmt::Display| AddressError::Malformed { text: text.to_owned(), why: why.to_string() };
        let url = Url::parse(text).map_err(|error| malformed(&error))?;
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err(AddressError::Surplus);
        }
        match url.scheme() {
            "http" | "https" => {
                Ok(Self { base: url.as_str().trim_end_matches('/').to_owned(), socket: None })
            }
            _ => Err(AddressError::Scheme(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Address, AddressError> {
        text.parse()
    }

    #[test]
    fn addresses_of_servers() {
        for (text, url) in [
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070/jobs"),
            ("http://127.0.0.1:7070/", "http://127.0.0.1:7070/jobs"),
            ("http://[::1]:7070", "http://[::1]:7070/jobs"),
            ("HTTP://LOCALHOST", "http://localhost/jobs"),
            ("https://host:7070", "https://host:7070/jobs"),
            ("http://host/queue/", "http://host/queue/jobs"),
            ("unix:/run/tagwerk.sock", "http://localhost/jobs"),
        ] {
            assert_eq!(read(text).unwrap().url("/jobs"), url, "{text}");
        }
        let socket = read("unix:///run/tagwerk.sock").unwrap();
        assert_eq!(socket.socket(), Some(Path::new("/run/tagwerk.sock")));
        assert_eq!(socket.to_string(), "unix:/run/tagwerk.sock");
        for (text, encrypted) in [("HTTPS://host", true), ("http://https", false), ("unix:/https:", false)] {
            assert_eq!(read(text).unwrap().is_encrypted(), encrypted, "{text}");
        }
        assert_eq!(read("http://127.0.0.1:7070/").unwrap().to_string(), "http://127.0.0.1:7070");
    }

    #[test]
    fn what_is_no_address_says_what_to_write() {
        for text in ["", "localhost:7070", "127.0.0.1", "ftp://host", "sqlite:tagwerk.db"] {
            assert!(matches!(read(text), Err(AddressError::Scheme(_))), "{text}");
        }
        for text in ["http://", "http://host:99999", "http://ho st"] {
            assert!(matches!(read(text), Err(AddressError::Malformed { .. })), "{text}");
        }
        for text in ["http://u:secret@host", "http://host/?a=b", "http://host/#x"] {
            let error = read(text).unwrap_err();
            assert_eq!(error, AddressError::Surplus, "{text}");
            assert!(!error.to_string().contains("secret"));
        }
        assert_eq!(read("unix:"), Err(AddressError::NoPath));
    }
}
