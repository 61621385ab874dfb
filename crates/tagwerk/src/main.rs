//! Tagwerk: a persistent job queue server in one binary.

mod config;
mod system;

fn main() {}
