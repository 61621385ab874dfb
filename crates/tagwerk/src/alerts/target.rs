//! A URL to which something is sent. What is in it besides the host may be a secret and is never shown.

use std::fmt;

use http::Uri;

/// Longest URL: those of usual services have some 200 bytes.
const URL_MAX_BYTES: usize = 2_000;

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// TLS or none.
    pub(super) scheme: Scheme,
    /// Without the brackets of IPv6.
    pub(super) host: String,
    /// The port, written or usual.
    pub(super) port: u16,
    /// Host as the header wants it, with the port if it was written.
    pub(super) authority: String,
    /// Path and query.
    pub(super) path: String,
}

/// How the connection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Plain.
    Http,
    /// With TLS.
    Https,
}

impl Target {
    /// Reads one; the error does not repeat it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let wrong = || "must be a URL such as https://example.org/path".to_owned();
        if text.len() > URL_MAX_BYTES || text.contains('#') {
            return Err(format!("must be a URL of at most {URL_MAX_BYTES} bytes without a fragment"));
        }
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?.as_str().to_owned();
        if authority.contains('@') {
            return Err("must be a URL without a user and a password".to_owned());
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let usual = if scheme == Scheme::Https { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(usual);
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let path = if path.is_empty() { "/".to_owned() } else { path };
        Ok(Self { scheme, host, port, authority, path })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.scheme == Scheme::Https { "https" } else { "http" };
        let rest = if self.path == "/" { "" } else { "/***" };
        write!(f, "{scheme}://{}{rest}", self.authority)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_their_paths_are_not_shown() {
        let target = Target::read("https://hooks.example.org/services/T1/SECRET?x=1").unwrap();
        assert_eq!(
            (&*target.host, target.port, &*target.path),
            ("hooks.example.org", 443, "/services/T1/SECRET?x=1")
        );
        assert_eq!(
            format!("{target} {target:?}"),
            "https://hooks.example.org/*** https://hooks.example.org/***"
        );
        let target = Target::read("http://[::1]:8080").unwrap();
        assert_eq!((&*target.host, target.port, &*target.authority), ("::1", 8080, "[::1]:8080"));
        assert_eq!((&*target.path, target.to_string().as_str()), ("/", "http://[::1]:8080"));
    }

    #[test]
    fn what_is_no_url_is_refused_without_repeating_it() {
        for text in [
            "",
            "hooks.example.org/SECRET",
            "/SECRET",
            "ftp://example.org/SECRET",
            "file:///SECRET",
            "https://user:SECRET@example.org/",
            "https:///SECRET",
            "http://a b/SECRET",
            "https://example.org/#SECRET",
        ] {
            let error = Target::read(text).unwrap_err();
            assert!(error.starts_with("must be a URL") && !error.contains("SECRET"), "{text}: {error}");
        }
    }
}
