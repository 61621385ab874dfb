//! A typed client for the HTTP interface of Tagwerk, a persistent job queue server.
//!
//! ```no_run
//! use tagwerk_client::Client;
//! use tagwerk_client::api::request::{ClaimRequest, CompleteRequest, EnqueueRequest};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new("http://127.0.0.1:7070")?;
//!
//! // A producer. With an idempotency key the call may be repeated: the job is made once.
//! let job = EnqueueRequest {
//!     job_type: "send-invoice".to_owned(),
//!     idempotency_key: Some("invoice-4711".to_owned()),
//!     ..EnqueueRequest::default()
//! };
//! println!("job {}", client.enqueue(&job).await?.value.id());
//!
//! // A worker: claim, work, report.
//! let claim = ClaimRequest { worker_id: "worker-1".to_owned(), ..ClaimRequest::default() };
//! if let Some(job) = client.claim(&claim).await?.value {
//!     let report = CompleteRequest { lease: Some(job.lease), ..CompleteRequest::default() };
//!     client.complete(job.summary.id, &report).await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees:
//!
//! - Every call of the interface is one method; what goes out and comes in are the wire types of [`api`].
//! - A call is repeated by itself only where repeating cannot do harm: reads, an enqueue with an idempotency key, a claim
//!   with a `request_id`, a report with its lease; any other call only when it certainly was not done, because no
//!   connection was made or the server says so. Waits grow up to a bound and respect `Retry-After` (see [`Retries`]).
//! - A stream of jobs ([`Client::stream_jobs`]) is never repeated by itself: its answers say what is in.
//! - It looks at no clock and no environment: no proxy settings are read, no redirect is followed.
//! - An API token ([`ClientBuilder::token`]) goes into a header of every call and into no error or debug text.
//!
//! Deliberately absent: TLS, a worker loop with threads and signals.

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
pub use work::{Context, Event, Failure, Tally, Worker, WorkerBuilder};
