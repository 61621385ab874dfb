//! The engine over the memory store: every kind of command, every refusal, time, faults. No thread, no sleep: the tests
//! drive [`tagwerk_engine::committer::Committer::step`] by hand.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests: a broken expectation fails the test")]

mod alerts;
mod checks;
mod claims;
mod damage;
mod edges;
mod effects;
mod enqueues;
mod explains;
mod faults;
mod follow_ups;
mod handle;
mod held_back;
mod limits;
mod operators;
mod orders;
mod overviews;
mod queues;
mod reports;
mod retention;
mod rig;
mod supersede;
mod times;
mod type_rules;
mod waits;
