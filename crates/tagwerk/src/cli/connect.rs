//! The server that a command speaks to.

use std::path::PathBuf;
use std::time::Duration;

use tagwerk_client::{Address, Client, ClientBuilder, Retries};

use super::exit::Exit;
use super::failure::Failure;

/// The address unless another is given.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7070";

/// Outlasts a restart of the server: about half a minute.
pub(crate) const PATIENCE: Retries =
    Retries { tries: 10, first: Duration::from_millis(200), cap: Duration::from_secs(5), seed: 0 };

/// Where the API token may stand.
pub(crate) const TOKEN_VARIABLE: &str = "TAGWERK_TOKEN";

/// The flags of every command that speaks to a server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Remote {
    /// The server: http://HOST:PORT, https://HOST:PORT or unix:PATH
    #[arg(long, value_name = "URL", env = "TAGWERK_URL", hide_env_values = true, default_value = DEFAULT_URL, value_parser = address)]
    pub(crate) url: Address,
    /// The API token, if the server wants one; better given by the environment, where other users cannot see it
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    pub(crate) token: Option<Secret>,
    #[command(flatten)]
    pub(crate) trust: Trust,
    /// Print JSON, exactly as the server sends it, instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who may vouch for the server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Trust {
    /// For https: the file (PEM) with the authority of the server's certificate; default: those that the system trusts
    #[arg(long, value_name = "FILE", env = "TAGWERK_CA_FILE", hide_env_values = true)]
    ca_file: Option<PathBuf>,
}

/// What nothing shows.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A client of this server with this token. An empty one counts as none, as does an empty file name.
pub(crate) fn builder(url: Address, (token, trust): (Option<&Secret>, &Trust)) -> ClientBuilder {
    let mut builder = Client::builder(url);
    if let Some(file) = trust.ca_file.as_ref().filter(|file| !file.as_os_str().is_empty()) {
        builder = builder.ca_file(file);
    }
    match token {
        Some(Secret(token)) if !token.is_empty() => builder.token(token),
        _ => builder,
    }
}

/// An empty variable counts as not set, as in the server's configuration.
pub(crate) fn address(text: &str) -> Result<Address, tagwerk_client::AddressError> {
    if text.is_empty() { DEFAULT_URL.parse() } else { text.parse() }
}

impl Remote {
    /// A client for a person who waits: a server that is not there is said at once.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(self.builder().retries(Retries::NONE).build()?)
    }

    /// A client to be set up further.
    pub(crate) fn builder(&self) -> ClientBuilder {
        builder(self.url.clone(), (self.token.as_ref(), &self.trust))
    }
}

/// Runs a command that speaks to a server, on this thread.
pub(crate) fn wait(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::machine(format!("cannot start: {error}"), "the system may have run out of file descriptors")
    })?;
    let outcome = runtime.block_on(work);
    // Without waiting for a write to a stderr that nobody reads.
    runtime.shutdown_background();
    outcome
}
