//! Certificate and key out of their files, and what can be wrong with them.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{Error as RustlsError, InconsistentKeys, ServerConfig};
use tagwerk_core::{Timestamp, limits};

use super::validity::{Validity, shown};
use super::{DAYS_TO_WARN, TlsFiles};

/// What the server speaks behind TLS, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// Others may read the file.
const OTHERS_READ: u32 = 0o004;

/// Why the server cannot speak TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// One of the two is missing.
    #[error("TLS needs a certificate and its key: {missing} is not set; give it with {flag}")]
    Half {
        /// The setting that is not there.
        missing: &'static str,
        /// The flag for it.
        flag: &'static str,
    },
    /// A Unix socket.
    #[error(
        "a Unix socket speaks no TLS: take out server.tls.cert and server.tls.key, or listen on ADDRESS:PORT"
    )]
    Socket,
    /// A file that cannot be read.
    #[error("cannot read {path} ({setting}): {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What names it.
        setting: &'static str,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// A file without what it is there for.
    #[error("{path} ({setting}) holds no {wanted}: {why}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What names it.
        setting: &'static str,
        /// What it should hold.
        wanted: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The key of another certificate.
    #[error(
        "the key in {key} does not belong to the certificate in {cert}: name the two that were made together; the \
         server's own certificate comes first in its file, those that vouch for it after it"
    )]
    Mismatch {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's.
        key: PathBuf,
    },
    /// The certificate's time is over.
    #[error("the certificate in {path} has expired at {at}: no client would accept it; renew it")]
    Expired {
        /// Its file.
        path: PathBuf,
        /// When.
        at: String,
    },
    /// Its time has not come.
    #[error(
        "the certificate in {path} is not valid before {at}: look at this machine's clock, or take another one"
    )]
    NotYet {
        /// Its file.
        path: PathBuf,
        /// From when on.
        at: String,
    },
}

/// The names of the two settings.
const CERT: &str = "server.tls.cert";
const KEY: &str = "server.tls.key";

/// Both files.
pub(super) struct Pair {
    cert: PathBuf,
    key: PathBuf,
}

/// What the files hold, fit to serve.
pub(super) struct Loaded {
    pub(super) config: Arc<ServerConfig>,
    validity: Validity,
}

impl Loaded {
    /// Says until when the certificate is good.
    pub(super) fn tell(&self, now: Timestamp) {
        let left = (self.validity.until - now.as_millis()) / limits::DAY_MS;
        let until = shown(self.validity.until);
        if left < DAYS_TO_WARN {
            tracing::warn!(until, days = left, "the certificate is used, and expires soon; renew it");
        } else {
            tracing::info!(until, days = left, "the certificate is used");
        }
    }
}

impl Pair {
    /// Both files or none.
    pub(super) fn of(named: &TlsFiles) -> Result<Option<Self>, TlsError> {
        match (&named.cert, &named.key) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => Ok(Some(Self { cert: cert.clone(), key: key.clone() })),
            (None, Some(_)) => Err(TlsError::Half { missing: CERT, flag: "--tls-cert FILE" }),
            (Some(_), None) => Err(TlsError::Half { missing: KEY, flag: "--tls-key FILE" }),
        }
    }

    /// Reads both, and holds them against each other and the time.
    pub(super) fn load(&self, now: Timestamp) -> Result<Loaded, TlsError> {
        let chain = self.chain()?;
        let key = self.key()?;
        let bad_cert = |why: String| content((&self.cert, CERT), "certificate that can be used", why);
        let validity = chain.first().and_then(|own| Validity::of(own));
        let validity = validity.ok_or_else(|| bad_cert("the first one cannot be read".to_owned()))?;
        if validity.until < now.as_millis() {
            return Err(TlsError::Expired { path: self.cert.clone(), at: shown(validity.until) });
        }
        if validity.from > now.as_millis() {
            return Err(TlsError::NotYet { path: self.cert.clone(), at: shown(validity.from) });
        }
        let provider = Arc::new(ring::default_provider());
        let bad_key =
            |error: RustlsError| content((&self.key, KEY), "private key that can be used", error.to_string());
        let certified =
            CertifiedKey::new(chain, provider.key_provider.load_private_key(key).map_err(bad_key)?);
        match certified.keys_match() {
            Ok(()) | Err(RustlsError::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(RustlsError::InconsistentKeys(_)) => {
                return Err(TlsError::Mismatch { cert: self.cert.clone(), key: self.key.clone() });
            }
            Err(error) => return Err(bad_cert(error.to_string())),
        }
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(bad_key)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Loaded { config: Arc::new(config), validity })
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let file = (self.cert.as_path(), CERT);
        let text = read(file)?;
        let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let wanted = "certificate in PEM form";
        match chain {
            Ok(chain) if chain.is_empty() => {
                Err(content(file, wanted, "there is no -----BEGIN CERTIFICATE----- in it".to_owned()))
            }
            Ok(chain) => Ok(chain),
            Err(error) => Err(content(file, wanted, error.to_string())),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let file = (self.key.as_path(), KEY);
        let text = read(file)?;
        let wanted = "private key in PEM form";
        PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
            PemError::NoItemsFound if text.windows(9).any(|part| part == b"ENCRYPTED") => {
                content(file, wanted, "it is encrypted; write it without its password first".to_owned())
            }
            PemError::NoItemsFound => {
                content(file, wanted, "there is no -----BEGIN PRIVATE KEY----- in it".to_owned())
            }
            error => content(file, wanted, error.to_string()),
        })
    }
}

/// A file, and what names it.
type Named<'a> = (&'a Path, &'static str);

fn content((path, setting): Named<'_>, wanted: &'static str, why: String) -> TlsError {
    TlsError::Content { path: path.to_owned(), setting, wanted, why }
}

fn read((path, setting): Named<'_>) -> Result<Vec<u8>, TlsError> {
    let failed = |error| TlsError::Read { path: path.to_owned(), setting, error };
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if setting == KEY && mode & OTHERS_READ != 0 {
        tracing::warn!(path = %path.display(), "everybody on this machine may read the private key; chmod 600 it");
    }
    let mut text = Vec::new();
    let most = u64::try_from(limits::TLS_FILE_MAX_BYTES).unwrap_or(u64::MAX);
    file.take(most + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() > limits::TLS_FILE_MAX_BYTES {
        let why = format!("it has more than {} bytes", limits::TLS_FILE_MAX_BYTES);
        return Err(content((path, setting), "certificate or key", why));
    }
    Ok(text)
}
