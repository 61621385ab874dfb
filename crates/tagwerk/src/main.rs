//! Tagwerk: a persistent job queue server in one binary.
//!
//! | module | what |
//! |---|---|
//! | `cli` | the command line |
//! | `config` | what the operator may set: file < environment < flags |
//! | `serve` | the server as a process: store, engine, connections, signals |
//! | `http` | the HTTP interface |
//! | `alerts` | looking whether something rings, and telling people |
//! | `metrics`, `redact` | what is counted, and what is taken out of error texts |
//! | `system` | the real clock and randomness |
//! | `fuzzed` | tests only: what must hold for any input |

mod alerts;
mod cli;
mod config;
#[cfg(test)]
mod fuzzed;
mod http;
mod metrics;
mod redact;
mod serve;
mod system;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
