//! Drives beanstalkd: its text protocol, one call under way on each connection.

use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::bodies::payload;
use super::conversation::{Driven, Order, Reply, Tally, mark_begin, mark_end};
use super::pump::{Caller, Connect, Left, Moved, Server};
use crate::system;

/// The system that is driven.
pub(super) struct Peer {
    server: Server,
}

impl Peer {
    pub(super) fn new(address: &str) -> anyhow::Result<Self> {
        Ok(Self { server: Server::at(address)? })
    }
}

impl Driven for Peer {
    fn carry_out(&mut self, order: &Order) -> anyhow::Result<Reply> {
        let tally = match order.call.as_str() {
            "enqueue" => {
                let left = Left::of(0);
                self.server.load((order.in_flight, order.time()), |c| Put::new(c, left.clone()))?
            }
            "fill" => {
                let left = Left::of(order.jobs);
                self.server.load((64, Duration::from_mins(1)), |c| Put::new(c, left.clone()))?
            }
            "drain_one" => {
                self.server.load((order.workers, order.time()), |connection| Take { connection })?
            }
            "latency" => self.server.wait(async |address| latency(address, order).await)?,
            "bulk" | "drain_bulk" => return Ok(Reply::Absent("its protocol has no call for many jobs")),
            _ => return Ok(Reply::Absent("nobody has written it")),
        };
        Ok(Reply::Done(tally))
    }
}

/// A connection.
struct Connection {
    stream: BufReader<TcpStream>,
    line: String,
}

impl Connect for Connection {
    async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), line: String::new() })
    }
}

impl Connection {
    async fn send(&mut self, command: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(command).await.context("the server does not read")
    }

    async fn answer(&mut self) -> anyhow::Result<&str> {
        self.line.clear();
        let count = self.stream.read_line(&mut self.line).await.context("no answer")?;
        anyhow::ensure!(count > 0, "the server has closed the connection");
        Ok(self.line.trim_end())
    }

    /// After a reserve: the id of the job, or none when there was no job in time.
    async fn reserved(&mut self) -> anyhow::Result<Option<u64>> {
        let answer = self.answer().await?;
        if answer == "TIMED_OUT" {
            return Ok(None);
        }
        let mut words = answer.strip_prefix("RESERVED ").with_context(|| answer.to_owned())?.split(' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).context("no number");
        let (id, bytes) = (number()?, number()?);
        let mut body = vec![0; usize::try_from(bytes)? + 2];
        self.stream.read_exact(&mut body).await.context("no body")?;
        Ok(Some(id))
    }

    async fn expect(&mut self, word: &str) -> anyhow::Result<()> {
        let answer = self.answer().await?;
        anyhow::ensure!(answer.starts_with(word), "{answer} instead of {word}");
        Ok(())
    }

    async fn delete(&mut self, id: u64) -> anyhow::Result<()> {
        self.send(format!("delete {id}\r\n").as_bytes()).await?;
        self.expect("DELETED").await
    }
}

fn put_command() -> Vec<u8> {
    let body = payload();
    format!("put 1024 0 300 {}\r\n{body}\r\n", body.len()).into_bytes()
}

/// Puts one job a call, until as many are in as were asked for.
struct Put {
    connection: Connection,
    command: Vec<u8>,
    left: Left,
}

impl Put {
    fn new(connection: Connection, left: Left) -> Self {
        Self { connection, command: put_command(), left }
    }
}

impl Caller for Put {
    async fn call(&mut self) -> anyhow::Result<Moved> {
        if self.left.take(1) == 0 {
            return Ok(Moved { jobs: 0, more: false });
        }
        self.connection.send(&self.command).await?;
        self.connection.expect("INSERTED").await?;
        Ok(Moved { jobs: 1, more: true })
    }
}

/// Reserves a job and deletes it.
struct Take {
    connection: Connection,
}

impl Caller for Take {
    async fn call(&mut self) -> anyhow::Result<Moved> {
        self.connection.send(b"reserve-with-timeout 0\r\n").await?;
        let Some(id) = self.connection.reserved().await? else {
            return Ok(Moved { jobs: 0, more: false });
        };
        self.connection.delete(id).await?;
        Ok(Moved { jobs: 1, more: true })
    }
}

/// One job at a time for a worker that waits.
async fn latency(address: &str, order: &Order) -> anyhow::Result<Tally> {
    let mut worker = Connection::open(address).await?;
    let mut producer = Connection::open(address).await?;
    let command = put_command();
    let mut waits_ms = Vec::new();
    mark_begin();
    let began = system::now();
    while waits_ms.len() < order.samples && system::since(began) < order.time() {
        worker.send(b"reserve\r\n").await?;
        let rest = Duration::from_micros(2_000 + 977 * (waits_ms.len() as u64 % 4));
        tokio::time::sleep(rest).await; // tidy: sleep because the queue is to be idle, with a worker that waits
        let from = system::now();
        producer.send(&command).await?;
        let id = worker.reserved().await?.context("the wait ended without a job")?;
        waits_ms.push(system::seconds_since(from) * 1e3);
        producer.expect("INSERTED").await?;
        worker.delete(id).await?;
    }
    mark_end();
    let jobs = u64::try_from(waits_ms.len())?;
    Ok(Tally { jobs, seconds: system::seconds_since(began), total: jobs, waits_ms, ..Tally::default() })
}
