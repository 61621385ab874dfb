//! The server that a command speaks to.

use std::time::Duration;

use tagwerk_client::{Address, Client, Retries};

use super::exit::Exit;
use super::failure::Failure;

/// The address unless another is given.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7070";

/// Outlasts a restart of the server: about half a minute.
pub(crate) const PATIENCE: Retries =
    Retries { tries: 10, first: Duration::from_millis(200), cap: Duration::from_secs(5), seed: 0 };

/// The flags of every command that speaks to a server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Remote {
    /// The server: http://HOST:PORT or unix:PATH
    #[arg(long, value_name = "URL", env = "TAGWERK_URL", hide_env_values = true, default_value = DEFAULT_URL, value_parser = address)]
    pub(crate) url: Address,
    /// Print JSON, exactly as the server sends it, instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// An empty variable counts as not set, as in the server's configuration.
pub(crate) fn address(text: &str) -> Result<Address, tagwerk_client::AddressError> {
    if text.is_empty() { DEFAULT_URL.parse() } else { text.parse() }
}

impl Remote {
    /// A client for a person who waits: a server that is not there is said at once.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::builder(self.url.clone()).retries(Retries::NONE).build()?)
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
