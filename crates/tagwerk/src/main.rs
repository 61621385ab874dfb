//! Tagwerk: a persistent job queue server in one binary.
//!
//! | module | what |
//! |---|---|
//! | `cli` | the command line |
//! | `config` | what the operator may set: file < environment < flags |
//! | `serve` | the server as a process: store, engine, connections, signals |
//! | `http` | the HTTP interface |
//! | `metrics`, `redact` | what is counted, and what is taken out of error texts |
//! | `system` | the real clock and randomness |

mod cli;
mod config;
mod http;
mod metrics;
mod redact;
mod serve;
mod system;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
