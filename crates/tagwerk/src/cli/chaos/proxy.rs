//! Between a worker and the throw-away server: takes one request after the other and does with each what the plan says.
//!
//! Guarantees: a message is read whole before anything is done with it, so that a cut falls where it is meant to; a client
//! that ends is passed on to the server, which then does what it always does. One port for each worker, so that it is known
//! who calls. Streams of lines are passed on as they come, and never struck.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tagwerk_client::Client;
use tagwerk_client::api::problem::{Code, Problem};
use tagwerk_client::api::{Seconds, Status};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::call::Call;
use super::fate::{Cut, Fate, Moment, Plan, RETRY_AFTER, Until};
use super::message::{AHEAD_MAX_BYTES, End, Message, Wire};

/// How often a call that is held back looks whether it may go on.
const LOOK: Duration = Duration::from_millis(25);

/// After so many leases a call is held back no longer, whatever the other worker does.
const HOLD_LEASES: u32 = 4;

/// Kill this worker, and say so when it is dead.
pub(super) type Kill = (usize, oneshot::Sender<()>);

/// What all connections of a round share.
pub(super) struct Stage {
    pub(super) server: SocketAddr,
    /// Speaks to the server itself.
    pub(super) client: Client,
    pub(super) lease: Duration,
    pub(super) plan: Mutex<Plan>,
    pub(super) kills: mpsc::UnboundedSender<Kill>,
    /// Requests of workers so far.
    pub(super) requests: watch::Sender<u64>,
    /// Requests that are or were held back and have no answer yet.
    pub(super) held: watch::Sender<usize>,
}

impl Stage {
    pub(super) fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A port for one worker. Dropped, it ends all its connections.
pub(super) struct Port {
    pub(super) addr: SocketAddr,
    _connections: JoinSet<()>,
}

impl Port {
    /// Opens a free port.
    pub(super) async fn open(stage: &Arc<Stage>, worker: usize) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let addr = listener.local_addr()?;
        let mut connections = JoinSet::new();
        let stage = Arc::clone(stage);
        connections.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                tokio::select! {
                    // An error is of that connection alone.
                    accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                        open.spawn(connection(Arc::clone(&stage), worker, stream));
                    },
                    Some(_) = open.join_next() => {}
                }
            }
        });
        Ok(Self { addr, _connections: connections })
    }
}

/// Counts as held back until it is dropped.
struct Held<'a>(&'a Stage);

impl<'a> Held<'a> {
    fn new(stage: &'a Stage) -> Self {
        stage.held.send_modify(|held| *held += 1);
        Self(stage)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.send_modify(|held| *held = held.saturating_sub(1));
    }
}

/// Whether the connection goes on after a request.
type Next = io::Result<Option<Wire>>;

async fn connection(stage: Arc<Stage>, worker: usize, stream: TcpStream) {
    let mut down = Wire::new(stream);
    loop {
        match request(&stage, worker, down).await {
            Ok(Some(again)) => down = again,
            // Either side is gone, or was cut.
            Ok(None) | Err(_) => return,
        }
    }
}

/// One request.
async fn request(stage: &Stage, worker: usize, mut down: Wire) -> Next {
    let Some(mut message) = down.reader.head().await? else { return Ok(None) };
    if message.first.starts_with("PRI ") {
        let told = "the worker speaks HTTP/2; here only HTTP/1.1 is understood".to_owned();
        let remarks = &mut stage.plan().remarks;
        if !remarks.contains(&told) {
            remarks.push(told);
        }
        return Ok(None);
    }
    stage.requests.send_modify(|requests| *requests += 1);
    if message.is_stream() {
        stream(stage.server, &message, down).await?;
        return Ok(None);
    }
    down.request_body(&mut message).await?;
    let call = {
        let (method, target) = message.target();
        Call::of(method, target, &message.body)
    };
    let lease = i64::try_from(stage.lease.as_millis()).unwrap_or(i64::MAX);
    if let Some(body) = call.with_lease(&message.body, Seconds::from_ms(lease)) {
        message.body = body;
    }
    let fate = stage.plan().before(worker, &call);
    match fate {
        Fate::Refuse(status) => {
            down.send(&refusal(status).bytes()).await?;
            return Ok(message.keeps_alive().then_some(down));
        }
        Fate::Kill(_) => {
            kill(stage, worker).await;
            return Ok(None);
        }
        Fate::Hold(until) => {
            let _held = Held::new(stage);
            hold(stage, &call, until).await;
            return finish(stage, worker, (call, message, down)).await;
        }
        Fate::Pass | Fate::Cut(_) | Fate::Delay(_) => {}
    }
    finish(stage, worker, (call, message, down)).await
}

/// The part of a request that the server sees.
async fn finish(stage: &Stage, worker: usize, request: (Call, Message, Wire)) -> Next {
    let (call, message, down) = request;
    let (down, answer) = forward(stage.server, &message, down).await?;
    let fate = stage.plan().after(worker, &call, (answer.status(), &answer.body));
    deliver(stage, worker, (down, message.keeps_alive()), (answer, fate)).await
}

/// What the worker gets of the answer.
async fn deliver(stage: &Stage, worker: usize, down: (Wire, bool), answer: (Message, Fate)) -> Next {
    let ((mut down, keeps_alive), (answer, fate)) = (down, answer);
    let bytes = answer.bytes();
    match fate {
        Fate::Cut(cut) => {
            if cut == Cut::Half {
                down.send(&bytes[..bytes.len() / 2]).await?;
            }
            down.end(if cut == Cut::Reset { End::Reset } else { End::Closed });
            return Ok(None);
        }
        Fate::Kill(Moment::Answered) => {
            down.send(&bytes).await?;
            kill(stage, worker).await;
            return Ok(None);
        }
        Fate::Kill(_) => {
            kill(stage, worker).await;
            return Ok(None);
        }
        // tidy: sleep because being late is what this scenario does.
        Fate::Delay(length) => tokio::time::sleep(length).await,
        Fate::Pass | Fate::Hold(_) | Fate::Refuse(_) => {}
    }
    down.send(&bytes).await?;
    Ok((keeps_alive && answer.keeps_alive()).then_some(down))
}

/// Sends a request to the server and brings its answer. A client that closes its side meanwhile is passed on.
async fn forward(server: SocketAddr, message: &Message, down: Wire) -> io::Result<(Wire, Message)> {
    let mut up = Wire::new(TcpStream::connect(server).await?);
    up.send(&message.bytes()).await?;
    let (method, _) = message.target();
    let Wire { mut reader, mut write } = up;
    let (mut down, mut ended) = (down, false);
    let mut answer = std::pin::pin!(reader.answer(method));
    loop {
        tokio::select! {
            answer = &mut answer => return answer.map(|answer| (down, answer)),
            more = down.reader.more(), if !ended && down.reader.ahead() < AHEAD_MAX_BYTES => {
                ended = !matches!(more, Ok(1..));
                if ended {
                    write.shutdown().await?;
                }
            }
        }
    }
}

/// Passes on a body of lines and its answer as they come.
async fn stream(server: SocketAddr, head: &Message, down: Wire) -> io::Result<()> {
    let mut up = Wire::new(TcpStream::connect(server).await?);
    up.send(&head.last_head()).await?;
    down.join(up).await
}

/// Has the worker killed, and waits until it is dead.
async fn kill(stage: &Stage, worker: usize) {
    let (dead, is_dead) = oneshot::channel();
    // A round that is over kills by itself.
    if stage.kills.send((worker, dead)).is_ok() {
        drop(is_dead.await);
    }
}

/// Waits as long as this call is to be held back.
async fn hold(stage: &Stage, call: &Call, until: Until) {
    let Some(job) = call.jobs.first().copied() else { return };
    let most = stage.lease * HOLD_LEASES;
    if tokio::time::timeout(most, held(stage, job, until)).await.is_err() {
        let told = match until {
            Until::Over => "a lease did not end in time; the machine may be too slow for --lease",
            _ => "no other worker took a job whose lease had ended; it was delivered once only",
        };
        stage.plan().remarks.push(told.to_owned());
    }
    stage.plan().let_go(job);
}

async fn held(stage: &Stage, job: i64, until: Until) {
    loop {
        let is_over = until == Until::Over
            && stage.client.job(job).await.is_ok_and(|job| {
                job.value.summary.status != Status::Running || job.value.summary.lease_losses > 0
            });
        if is_over || stage.plan().may_go(job, until) {
            return;
        }
        // tidy: sleep because the end of a lease sends no signal that could be waited for.
        tokio::time::sleep(LOOK).await;
    }
}

/// What a server says that has no time.
fn refusal(status: u16) -> Message {
    let code = if status == 429 { Code::QueueFull } else { Code::StoreBusy };
    let problem = Problem::new(code, "said by `tagwerk chaos`; the server has not seen this call");
    let reason = if status == 429 { "Too Many Requests" } else { "Service Unavailable" };
    Message {
        first: format!("HTTP/1.1 {status} {reason}"),
        fields: vec![
            ("content-type".to_owned(), "application/problem+json".to_owned()),
            ("retry-after".to_owned(), RETRY_AFTER.to_string()),
        ],
        body: serde_json::to_vec(&problem).unwrap_or_default(),
    }
}
