//! Whom a client believes that a server is who it says: for `https://` addresses.

use std::error::Error as StdError;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig, RootCertStore};

use crate::{Address, Error};

/// What connections to this address are encrypted with.
pub(crate) fn config(address: &Address, authorities: Option<&Path>) -> Result<ClientConfig, Error> {
    let roots = match authorities {
        // Also for a server without TLS: a name that is wrong shall be noticed.
        Some(file) => of_file(file)?,
        None if address.is_encrypted() => of_the_system()?,
        None => RootCertStore::empty(),
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Authorities(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn of_file(file: &Path) -> Result<RootCertStore, Error> {
    let unusable = |why: &dyn std::fmt::Display| {
        Error::Authorities(format!("the certificates in {} cannot be used: {why}", file.display()))
    };
    let text = std::fs::read(file).map_err(|error| unusable(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        roots.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"there is no -----BEGIN CERTIFICATE----- in it"));
    }
    Ok(roots)
}

fn of_the_system() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    // Old ones that cannot be read are in every list.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Error::Authorities(
            "this system has no certificates of authorities (package ca-certificates); name a file with that of the \
             server's"
                .to_owned(),
        ));
    }
    Ok(roots)
}

/// What TLS has against the server, if it was TLS that failed.
pub(crate) fn objection(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(in_words(error));
        }
        // An `io::Error` names not what is in it as its source, but the source of that.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn in_words(error: &rustls::Error) -> String {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, UnknownIssuer,
    };
    let words = match error {
        // Another authority of the same name signs otherwise.
        rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature) => {
            "its certificate is of an authority that is not trusted here"
        }
        rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. }) => "its certificate has expired",
        rustls::Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. }) => {
            "its certificate is not valid yet, or the clock of this machine is wrong"
        }
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            "its certificate is for another name"
        }
        rustls::Error::InvalidMessage(_) => "it does not speak TLS; perhaps it is http://",
        other => return other.to_string(),
    };
    words.to_owned()
}
