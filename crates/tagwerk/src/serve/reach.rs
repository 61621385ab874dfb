//! Who can reach the server where it listens, and what that asks for.
//!
//! Guarantees: beyond loopback it never answers anybody without an API token, at no moment, and never sends one in the clear
//! unless somebody has said in so many words that the way is safe.

use tagwerk_engine::store::Store as _;
use tagwerk_sqlite::SqliteStore;

use crate::config::{Config, Listen};
use crate::http::Callers;

/// Why it does not listen there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenToOthers {
    /// No TLS.
    #[error(
        "refusing to listen on {0} without TLS: beyond loopback every caller needs an API token, and whoever can read \
         the network would have it. Give --tls-cert and --tls-key; or listen on 127.0.0.1, [::1] or unix:PATH behind \
         a proxy on this machine; or, if nobody else can read the way to here (a proxy with TLS on a network of its \
         own), set server.plain_http = true"
    )]
    Plain(String),
    /// No tokens.
    #[error(
        "refusing to listen on {0}: beyond loopback every caller needs an API token, and this store has none. Make \
         one with tagwerk token create (tagwerk token create --help), or listen on 127.0.0.1, [::1] or unix:PATH"
    )]
    NoTokens(String),
}

/// Who may call, as far as the configuration says.
pub(super) fn callers(config: &Config) -> Result<Callers, OpenToOthers> {
    if config.listen.is_local() {
        return Ok(Callers::Local);
    }
    if config.tls.cert.is_none() && config.tls.key.is_none() && !config.plain_http {
        return Err(OpenToOthers::Plain(config.listen.to_string()));
    }
    Ok(Callers::Holders)
}

/// Whether there are the tokens that are needed.
pub(super) fn require_tokens(callers: Callers, config: &Config, store: &SqliteStore) -> anyhow::Result<()> {
    if callers == Callers::Holders && store.readers().snapshot()?.tokens()?.is_empty() {
        let refused = OpenToOthers::NoTokens(config.listen.to_string());
        return Err(super::StartError::from(refused).into());
    }
    Ok(())
}

/// The names by which it may be called. Its own address is no name that somebody else could turn on it.
pub(super) fn hosts(listen: &Listen, mut hosts: Vec<String>) -> Vec<String> {
    let Listen::Tcp(addr) = listen else { return hosts };
    if listen.is_local() {
        return hosts;
    }
    if addr.ip().is_unspecified() {
        if hosts.is_empty() {
            tracing::warn!("server.hosts is empty: who calls by another name than localhost is answered 421");
        }
        return hosts;
    }
    hosts.push(if addr.is_ipv6() { format!("[{}]", addr.ip()) } else { addr.ip().to_string() });
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_address_is_a_name() {
        for (at, expected) in [
            ("10.0.0.5:7070", vec!["a.example", "10.0.0.5"]),
            ("[fe80::1]:7070", vec!["a.example", "[fe80::1]"]),
            ("0.0.0.0:7070", vec!["a.example"]),
            ("[::]:7070", vec!["a.example"]),
            ("127.0.0.1:7070", vec!["a.example"]),
        ] {
            let listen = Listen::Tcp(at.parse().unwrap());
            assert_eq!(hosts(&listen, vec!["a.example".to_owned()]), expected, "{at}");
        }
    }
}
