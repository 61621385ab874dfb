//! Where the server listens and what it opens.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Port unless another is given. Free of meaning elsewhere, and easy to type.
const DEFAULT_PORT: u16 = 7070;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// On an address of the network.
    Tcp(SocketAddr),
    /// On a Unix socket.
    Unix(PathBuf),
}

impl Default for Listen {
    fn default() -> Self {
        Self::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)))
    }
}

impl Listen {
    /// `ADDRESS:PORT` or `unix:PATH`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("must be ADDRESS:PORT such as 127.0.0.1:{DEFAULT_PORT}, or unix:PATH, not {text:?}");
        match text.strip_prefix("unix:") {
            Some("") => Err(wrong()),
            Some(path) => Ok(Self::Unix(PathBuf::from(path))),
            None => {
                let localhost = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
                localhost.as_deref().unwrap_or(text).parse().map(Self::Tcp).map_err(|_| wrong())
            }
        }
    }

    /// Whether only programs on this machine can reach it.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(addr) => match addr.ip() {
                IpAddr::V4(ip) => ip.is_loopback(),
                IpAddr::V6(ip) => ip == Ipv6Addr::LOCALHOST,
            },
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => write!(f, "{addr}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What to open.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// A file.
    Sqlite(PathBuf),
    /// A database server; the URL may hold a password.
    Postgres(String),
}

impl Default for StoreUrl {
    fn default() -> Self {
        Self::Sqlite(PathBuf::from("tagwerk.db"))
    }
}

impl StoreUrl {
    /// `sqlite:FILE` or `postgres://…`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:"));
        match path {
            Some(":memory:") => {
                Err("a store in memory would lose every job; name a file: sqlite:FILE".into())
            }
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            Some(_) => Err("must name a file: sqlite:FILE".into()),
            // What looks like nothing we know may hold a password, so it is not repeated.
            None => Err("must be sqlite:FILE, such as sqlite:tagwerk.db".into()),
        }
    }
}

impl fmt::Display for StoreUrl {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&masked(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// A URL whose password, in the authority or in the query, is not shown.
fn masked(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user.to_owned(), |(name, _)| format!("{name}:***"));
            format!("{user}@{host}")
        }
        None => authority.to_owned(),
    };
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("password") => format!("{name}=***"),
        _ => pair.to_owned(),
    };
    let query: Option<Vec<String>> = query.map(|query| query.split('&').map(hide).collect());
    let query = query.map_or_else(String::new, |pairs| format!("?{}", pairs.join("&")));
    format!("{scheme}://{authority}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_sockets_are_local() {
        for local in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:7070", "localhost:1", "unix:/run/x.sock"] {
            assert!(Listen::read(local).unwrap().is_local(), "{local}");
        }
        for open in ["0.0.0.0:7070", "[::]:7070", "10.0.0.1:1", "[::ffff:127.0.0.1]:1"] {
            assert!(!Listen::read(open).unwrap().is_local(), "{open}");
        }
        for wrong in ["", "7070", ":7070", "example.org:80", "127.0.0.1", "unix:", "127.0.0.1:99999"] {
            assert!(Listen::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stores_are_named_by_url() {
        assert_eq!(StoreUrl::read("sqlite:a b.db"), Ok(StoreUrl::Sqlite("a b.db".into())));
        assert_eq!(StoreUrl::read("sqlite:///var/t.db"), Ok(StoreUrl::Sqlite("/var/t.db".into())));
        for wrong in ["", "t.db", "sqlite:", "sqlite::memory:", "mysql://x"] {
            assert!(StoreUrl::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn passwords_are_masked() {
        for (url, shown) in [
            ("postgres://u:secret@h/db", "postgres://u:***@h/db"),
            ("postgres://u:se@cret@h:5/db?sslmode=on", "postgres://u:***@h:5/db?sslmode=on"),
            ("postgresql://h/db?user=u&password=secret", "postgresql://h/db?user=u&password=***"),
            ("postgres://u@h", "postgres://u@h"),
        ] {
            let store = StoreUrl::read(url).unwrap();
            assert_eq!(store.to_string(), shown);
            assert!(!format!("{store:?}").contains("secret"));
        }
    }
}
