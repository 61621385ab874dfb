//! The client against a server that answers by script: what goes out, what is sent again, what comes back.

#![expect(clippy::unwrap_used, reason = "a broken expectation must fail the test")]

mod calls;
mod effects;
mod errors;
mod fake;
mod repeats;
mod script;
mod streams;
