//! The Rust SDK of Tagwerk, a persistent job queue server.
//!
//! A payload is a type, its worker a function:
//!
//! ```no_run
//! use tagwerk_client::{Client, Context, Failure, NewJob, Producer, Task, Worker};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct SendInvoice {
//!     number: u64,
//! }
//!
//! impl Task for SendInvoice {
//!     const TYPE: &'static str = "send-invoice";
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new("http://127.0.0.1:7070")?;
//!
//! // A web application hands it over. With the key it may do so again: the job is made once.
//! let job = NewJob::of(&SendInvoice { number: 4711 })?.key("invoice-4711");
//! Producer::new(client.clone()).enqueue(job).await?;
//!
//! // A worker does it.
//! Worker::builder(client, "mailer-1")
//!     .concurrency(4)
//!     .on(|job: Context, invoice: SendInvoice| async move {
//!         if job.verify() {
//!             // An earlier attempt may have sent it: look first.
//!         }
//!         Ok::<_, Failure>(format!("sent {}", invoice.number))
//!     })
//!     .build()
//!     .run(async { drop(tokio::signal::ctrl_c().await) })
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Worker`] claims, keeps leases with heartbeats, reports, and stops without leaving anything behind. [`Fake`] runs the same
//! handlers in a test, without a server. Below both stands [`Client`]: every call of the interface is one method, what goes out and comes
//! in are the wire types of [`api`].
//!
//! Guarantees:
//!
//! - A call is repeated by itself only where repeating cannot do harm: reads, an enqueue with an idempotency key (a [`Producer`] gives
//!   one to each job), a claim with a `request_id`, a report with its lease; any other call only when it certainly was not done,
//!   because no connection was made or the server says so. Waits grow up to a bound and respect `Retry-After` (see [`Retries`]).
//! - A stream of jobs ([`Client::stream_jobs`]) is never repeated by itself: its answers say what is in.
//! - It looks at no clock and no environment (but where `SSL_CERT_FILE` moves the system's authorities): no proxy settings are read, no redirect is followed. Timers are `tokio`'s; the one
//!   randomness is that of the standard library's hash maps, for names that keep processes apart.
//! - An API token ([`ClientBuilder::token`]) goes into a header of every call and into no error or debug text.
//!
//! - A server at `https://` must have a certificate that an authority of the system vouches for, or one of [`ClientBuilder::ca_file`].
//!
//! Deliberately absent: a switch to trust anybody, threads and signals.

mod address;
mod answer;
mod call;
mod client;
mod error;
mod fake;
mod nonce;
mod operator;
mod producer;
mod retries;
mod server;
mod stream;
mod task;
mod trust;
mod work;
mod worker;

pub use address::{Address, AddressError};
pub use answer::Answer;
pub use client::{Client, ClientBuilder, NewClientError, USER_AGENT};
pub use error::Error;
pub use fake::{Fake, FakeJob};
pub use retries::Retries;
pub use stream::{JobAnswers, JobLines, StreamEnded};
/// The wire types: request bodies, answers, problem codes, names.
pub use tagwerk_api as api;
pub use task::{NewJob, Producer, Task};
pub use work::{Context, Effect, Event, Failure, Tally, Worker, WorkerBuilder};
