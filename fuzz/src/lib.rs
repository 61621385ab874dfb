//! The properties that the targets try. They stand beside the code that they are about and are included here from
//! there, so that the crates have nothing in them for fuzzing.

#![expect(dead_code, unused_imports, reason = "what is included has more in it than the targets use")]

#[path = "../../crates/tagwerk/src"]
mod server {
    pub(crate) mod config;
    pub(crate) mod fuzzed;
    pub(crate) mod http {
        pub(crate) mod stream {
            pub(crate) mod fuzzed;
            pub(super) mod lines;
        }
    }
}

#[path = "../../crates/tagwerk-engine/src"]
mod engine {
    pub(crate) mod fuzzed;
    pub(crate) mod tokens;
}

/// Bodies at the door.
pub fn body(data: &[u8]) {
    server::fuzzed::body::body(data);
}

/// Configuration files.
pub fn config(data: &[u8]) {
    server::fuzzed::config::config(data);
}

/// A stream of lines, one job each.
pub fn lines(data: &[u8]) {
    server::http::stream::fuzzed::lines(data);
}

/// Query strings, cursors, ids, versions.
pub fn query(data: &[u8]) {
    server::fuzzed::query::query(data);
}

/// Lease tokens.
pub fn token(data: &[u8]) {
    engine::fuzzed::token(data);
}

/// Times, lengths of time, priorities, factors.
pub fn value(data: &[u8]) {
    server::fuzzed::value::value(data);
}
