//! Drives Tagwerk, and the echo route, whose answer to `POST /jobs` looks the same.

use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::json;

use super::bodies::{Form, Many, Serial, Shape, Single};
use super::conversation::{Driven, Order, Reply, Tally, mark_begin, mark_end};
use super::http::{Connection, head, request};
use super::pump::{Caller, Connect as _, Left, Moved, Server};
use crate::system;

/// Jobs of a bulk request as one document.
const JSON_JOBS: usize = 1_000;

/// Lines of a bulk request as a stream.
const STREAM_LINES: usize = 20_000;

/// How long filling may take.
const FILL_TIME: Duration = Duration::from_mins(1);

/// Connections that send in bulk, and those that drain in bulk.
const BULK_CONNECTIONS: usize = 2;
const DRAIN_CONNECTIONS: usize = 4;

/// The system that is driven.
pub(super) struct Peer {
    server: Server,
    serial: Serial,
    form: Option<Form>,
}

impl Peer {
    pub(super) fn new(address: &str) -> anyhow::Result<Self> {
        Ok(Self { server: Server::at(address)?, serial: Serial::default(), form: None })
    }

    /// Lines if the server takes them, else documents.
    fn form(&mut self) -> anyhow::Result<Form> {
        if let Some(form) = self.form {
            return Ok(form);
        }
        let status = self.server.wait(async |address| {
            let mut connection = Connection::open(address).await?;
            let empty = head("POST", "/jobs/bulk", "application/x-ndjson", 0);
            Ok(connection.call(&empty).await?.0)
        })?;
        Ok(*self.form.insert(if status == 200 { Form::Lines } else { Form::Json }))
    }

    fn bulk(&mut self, time: Duration) -> anyhow::Result<Tally> {
        let form = self.form()?;
        let jobs = if form == Form::Lines { STREAM_LINES } else { JSON_JOBS };
        let mut tally = self.send(Shape { form, jobs, delay_seconds: 0 }, (Left::of(0), time))?;
        let form = if form == Form::Lines { "NDJSON" } else { "JSON" };
        tally.note = Some(format!("{BULK_CONNECTIONS} connections, {form} of {jobs} jobs a request"));
        Ok(tally)
    }

    fn fill(&mut self, order: &Order) -> anyhow::Result<Tally> {
        let shape = Shape { form: self.form()?, jobs: JSON_JOBS, delay_seconds: order.delay_seconds };
        self.send(shape, (Left::of(order.jobs), FILL_TIME))
    }

    fn send(&self, shape: Shape, limits: (Left, Duration)) -> anyhow::Result<Tally> {
        let (left, time) = limits;
        let requests = Many::new(shape, self.serial.clone())?;
        let make = |connection| Bulk { connection, requests: requests.clone(), left: left.clone() };
        self.server.load((BULK_CONNECTIONS, time), make)
    }
}

impl Driven for Peer {
    fn carry_out(&mut self, order: &Order) -> anyhow::Result<Reply> {
        let tally = match order.call.as_str() {
            "enqueue" => {
                let requests = Single::new(self.serial.clone())?;
                let make = |connection| One { connection, requests: requests.clone() };
                self.server.load((order.in_flight, order.time()), make)?
            }
            "bulk" => self.bulk(order.time())?,
            "fill" => self.fill(order)?,
            "drain_one" => {
                self.server.load((order.workers, order.time()), |connection| ByOne { connection })?
            }
            "drain_turn" => {
                let make = |connection| Batch::of(connection, (1, Left::of(0)));
                self.server.load((order.workers, order.time()), make)?
            }
            "drain_bulk" => {
                let left = Left::of(order.jobs);
                let make = |connection| Batch::of(connection, (order.batch, left.clone()));
                self.server.load((DRAIN_CONNECTIONS, order.time()), make)?
            }
            "latency" => self.server.wait(async |address| latency(address, order).await)?,
            _ => return Ok(Reply::Absent("nobody has written it")),
        };
        Ok(Reply::Done(tally))
    }
}

/// Enqueues one job a call.
struct One {
    connection: Connection,
    requests: Single,
}

impl Caller for One {
    async fn call(&mut self) -> anyhow::Result<Moved> {
        let (status, body) = self.connection.call(self.requests.next()).await?;
        anyhow::ensure!(status == 201, "{status}: {}", String::from_utf8_lossy(body));
        Ok(Moved { jobs: 1, more: true })
    }
}

/// Enqueues many jobs a call.
struct Bulk {
    connection: Connection,
    requests: Many,
    left: Left,
}

impl Caller for Bulk {
    async fn call(&mut self) -> anyhow::Result<Moved> {
        let jobs = u64::try_from(self.requests.jobs)?;
        if self.left.take(jobs) == 0 {
            return Ok(Moved { jobs: 0, more: false });
        }
        let (status, body) = self.connection.call(self.requests.next()).await?;
        let start = String::from_utf8_lossy(&body[..body.len().min(300)]);
        let is_stream = start.starts_with("{\"done\":");
        anyhow::ensure!(status == 200 && !start.contains("\"problem\":{"), "{status}: {start}");
        if is_stream {
            let last: Streamed = serde_json::from_slice(body)?;
            anyhow::ensure!(last.done && last.created == jobs, "not all lines went in: {start}");
        }
        Ok(Moved { jobs, more: true })
    }
}

/// The last line of a streamed request.
#[derive(Deserialize)]
struct Streamed {
    done: bool,
    #[serde(default)]
    created: u64,
}

/// A job that was handed out, as far as a worker that does nothing looks at it.
#[derive(Deserialize)]
struct Claimed {
    id: i64,
    lease: String,
}

fn claim_one(wait_seconds: u32) -> Vec<u8> {
    let body = if wait_seconds == 0 {
        json!({"worker_id": "bench"})
    } else {
        json!({"worker_id": "bench", "wait_seconds": wait_seconds})
    };
    request("POST", "/jobs/claim", "application/json", body.to_string().as_bytes())
}

fn complete(job: &Claimed) -> Vec<u8> {
    let body = format!("{{\"lease\":\"{}\"}}", job.lease);
    request("POST", &format!("/jobs/{}/complete", job.id), "application/json", body.as_bytes())
}

/// Claims a job in one call and completes it in another.
struct ByOne {
    connection: Connection,
}

impl Caller for ByOne {
    async fn call(&mut self) -> anyhow::Result<Moved> {
        let (status, body) = self.connection.call(&claim_one(0)).await?;
        anyhow::ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(body));
        let Some(job) = serde_json::from_slice::<Option<Claimed>>(body)? else {
            return Ok(Moved { jobs: 0, more: false });
        };
        let (status, body) = self.connection.call(&complete(&job)).await?;
        anyhow::ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(body));
        Ok(Moved { jobs: 1, more: true })
    }
}

/// Completes what it holds and claims anew in one call.
struct Batch {
    connection: Connection,
    size: u64,
    left: Left,
    held: Vec<Claimed>,
}

#[derive(Deserialize)]
struct Turn {
    jobs: Vec<Claimed>,
    results: Vec<Reported>,
}

#[derive(Deserialize)]
struct Reported {
    status: u16,
}

impl Batch {
    fn of(connection: Connection, limits: (u64, Left)) -> Self {
        let (size, left) = limits;
        Self { connection, size, left, held: Vec::new() }
    }

    /// Reports what is held and claims up to so many.
    async fn turn(&mut self, claim: u64) -> anyhow::Result<u64> {
        use std::fmt::Write as _;
        let mut body = String::with_capacity(64 + 80 * self.held.len());
        body.push_str("{\"reports\":[");
        for (n, job) in self.held.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let Claimed { id, lease } = job;
            write!(body, "{comma}{{\"id\":{id},\"lease\":\"{lease}\",\"outcome\":\"completed\"}}")?;
        }
        if claim > 0 {
            write!(body, "],\"claim\":{{\"worker_id\":\"bench\",\"max_jobs\":{claim}}}}}")?;
        } else {
            body.push_str("]}");
        }
        let request = request("POST", "/jobs/report/bulk", "application/json", body.as_bytes());
        let (status, body) = self.connection.call(&request).await?;
        anyhow::ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(body));
        let turn: Turn = serde_json::from_slice(body)?;
        let refused = turn.results.iter().find(|result| result.status != 200);
        anyhow::ensure!(refused.is_none(), "a report was refused");
        self.held = turn.jobs;
        Ok(u64::try_from(turn.results.len())?)
    }
}

impl Caller for Batch {
    async fn call(&mut self) -> anyhow::Result<Moved> {
        let claim = self.left.take(self.size);
        if claim == 0 && self.held.is_empty() {
            return Ok(Moved { jobs: 0, more: false });
        }
        let jobs = self.turn(claim).await?;
        Ok(Moved { jobs, more: !self.held.is_empty() })
    }

    async fn finish(&mut self) -> anyhow::Result<u64> {
        if self.held.is_empty() { Ok(0) } else { self.turn(0).await }
    }
}

/// One job at a time for a worker that waits with a long poll.
async fn latency(address: &str, order: &Order) -> anyhow::Result<Tally> {
    let mut worker = Connection::open(address).await?;
    let mut producer = Connection::open(address).await?;
    let mut requests = Single::new(Serial::beginning_at(1 << 40))?;
    let claim = claim_one(30);
    let mut waits_ms = Vec::new();
    mark_begin();
    let began = system::now();
    while waits_ms.len() < order.samples && system::since(began) < order.time() {
        worker.send(&claim).await?;
        let rest = Duration::from_micros(2_000 + 977 * (waits_ms.len() as u64 % 4));
        tokio::time::sleep(rest).await; // tidy: sleep because the queue is to be idle, with a worker that waits
        let from = system::now();
        producer.send(requests.next()).await?;
        let (status, body) = worker.answer().await?;
        waits_ms.push(system::seconds_since(from) * 1e3);
        anyhow::ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(body));
        let job = serde_json::from_slice::<Option<Claimed>>(body)?.context("the wait ended without a job")?;
        producer.answer().await?;
        worker.call(&complete(&job)).await?;
    }
    mark_end();
    let jobs = u64::try_from(waits_ms.len())?;
    Ok(Tally { jobs, seconds: system::seconds_since(began), total: jobs, waits_ms, ..Tally::default() })
}
