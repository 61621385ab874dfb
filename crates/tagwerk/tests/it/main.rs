//! The real binary, from outside: over HTTP and as a process. What a test needs to know of rules is proved further
//! inside (core, engine, conformance suite); here stands what only the whole shows.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of the real binary read the real clock and its environment"
)]

mod client;
mod server;
