//! Decides whether what clients of a server saw can be true.
//!
//! Clients write down every call with its start and its end ([`Call`]). [`check`] asks whether there is an order of the calls
//! that explains every answer: a call that had ended before another began comes before it, a call without an answer happened
//! or did not, and time did what time may do (a lease ended, but not before its time). If there is none, it shows the
//! smallest set of answers that cannot all be true.
//!
//! | module | subject |
//! |---|---|
//! | `call` | what is written down |
//! | `read` | reads jobs and problems of the server's answers |
//! | `wire` | turns HTTP exchanges into calls |
//! | `log` | histories as files |
//! | `rules` | what is known of the run: how early a lease may end, what silence means |
//! | `partition` | cuts a history into parts that cannot influence each other |
//! | `spec` | what a server may do, written from the semantics and not from the server's code |
//! | `search` | looks for an order that explains a part |
//! | `shrink` | the smallest contradiction |
//! | `together` | rules between jobs: ordering keys, limits |
//! | `words` | says it to a person |
//!
//! Deliberately absent: a look at the server's own code. The rules here are a second opinion; `tagwerk-core` is not seen.
//! Also absent: which of several jobs a claim gets by their priority, and rules that need the whole store at once, such as
//! counters.

mod call;
mod check;
mod log;
mod partition;
mod read;
mod rules;
mod search;
mod shrink;
mod spec;
#[cfg(test)]
mod tests;
mod together;
mod wire;
mod words;

pub use call::{Action, Asked, Attempt, By, Call, Class, Key, Said, Scope, Status, Told, View, Whole};
pub use check::{Contradiction, Report, check};
pub use log::{History, LogError};
pub use read::time_ms;
pub use rules::{Rules, Silence};
pub use wire::{Answer, read_exchange};
