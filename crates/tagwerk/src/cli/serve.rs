//! `tagwerk serve` and `tagwerk config`.

use super::exit::Exit;
use super::failure::{Failure, Told};
use super::show;
use crate::config::{Config, ConfigArgs};
use crate::serve::StartError;

/// Run the server.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Settings come from the file, then TAGWERK_… variables, then flags; the last one wins.
Prints `listening on http://ADDRESS` (https with TLS, or `listening on unix:PATH`) when it is ready. Ends on SIGTERM or SIGINT after it has answered what it was asked. With TLS, SIGHUP reads certificate and key anew.

Exit codes:
  0  ended as it was told
  1  something unexpected; the message says what
  2  the command line or the settings are not usable, or ask for what this version refuses
  3  the store is in use by another process
  4  the store cannot be used: damaged, not a store, from a newer version, not writable
  5  it cannot listen there: the address is in use or not allowed

Examples:
  tagwerk serve
  tagwerk serve --store sqlite:data/tagwerk.db --listen 127.0.0.1:7071
  tagwerk serve --set max_retries=5 --set retention.completed=30d
  tagwerk serve --listen 0.0.0.0:7070 --tls-cert cert.pem --tls-key key.pem --set server.hosts=jobs.example"
)]
pub(crate) struct Serve {
    #[command(flatten)]
    config: ConfigArgs,
    /// Where to listen: ADDRESS:PORT (port 0 = any free one) or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Speak TLS: the certificate's file (PEM), the server's own first
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// The private key's file (PEM)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
}

/// Print the settings.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowConfig {
    #[command(flatten)]
    config: ConfigArgs,
}

impl Serve {
    /// The command.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let flags = [
            ("listen", "--listen", self.listen),
            ("server.tls.cert", "--tls-cert", self.tls_cert),
            ("server.tls.key", "--tls-key", self.tls_key),
        ];
        let config = Config::load(&self.config, &flags)?;
        match crate::serve::run(config) {
            Ok(()) => Ok(Exit::Done),
            Err(error) => {
                let code = error.downcast_ref::<StartError>().map_or(1, StartError::code);
                Err(Failure::Told(Told {
                    exit: Exit::Serve(code),
                    message: with_causes(&error),
                    advice: String::new(),
                }))
            }
        }
    }
}

/// The error and its causes, as far as it does not name them itself.
fn with_causes(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

impl ShowConfig {
    /// The command.
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        // It would be no help to be sent here again.
        let config = Config::load(&self.config, &[]).map_err(|error| {
            Failure::usage(error.to_string(), "put right what is named, then run it again")
        })?;
        show::print(&config.show())
    }
}
