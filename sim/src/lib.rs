//! The deterministic simulator.
//!
//! A seed makes a world: one or several servers (the real engine and core) on a real or a simulated disk, a manual clock,
//! actors that behave well or badly, a network that loses and repeats, faults. Every answer is predicted by a small
//! reference model, and a list of invariants watches everything that is committed. The same seed leads to the same run,
//! line by line. README.md of this folder says how to read a failure and how to add to it.
//!
//! | module | what |
//! |---|---|
//! | `plan` | what the seed decides: settings, who takes part, what goes wrong how often |
//! | `world` | the loop: time, network, servers, judges |
//! | `actors` | producers, workers, operators, one file each |
//! | `witness` | the store wrapper that writes everything down and fails on demand |
//! | `model` | the small queue that predicts each answer |
//! | `invariants` | what must hold whatever happens, one file each |
//! | `trace`, `words`, `tally` | what is shown to people |
//!
//! Deliberately absent: HTTP, threads, sleeping, any clock or chance but the seed's.

mod actors;
mod call;
mod chance;
mod draws;
mod invariants;
mod model;
mod node;
mod plan;
mod tally;
mod trace;
mod witness;
mod words;
mod world;

pub use plan::StoreKind;
pub use tally::Tally;
pub use world::{Echo, Failure, Report, run};
