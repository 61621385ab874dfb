//! The SQLite store: the suite of all stores, and what is its own.
#![expect(clippy::expect_used, reason = "a broken expectation must fail the test loudly")]

mod bench;
mod check;
mod conformance;
mod crowds;
mod damage;
mod engine;
mod gates;
mod lists;
mod log;
mod opening;
mod rig;
mod steps;
mod views;
