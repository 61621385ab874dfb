//! Scenarios of producers: one job a call, many in one JSON body, and a stream of lines.

use std::sync::Arc;

use serde::Deserialize;

use super::caller::{Caller, Trouble};
use super::meter::{Ends, Measured, Meter, Plan};
use super::world::{Lane, Room, World};

/// Lines of a chunk of a stream: about the size of a socket's buffer.
const CHUNK_LINES: u64 = 256;

/// Runs this many workers to their end.
pub(super) async fn together<F>(workers: usize, mut worker: impl FnMut(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut running = tokio::task::JoinSet::new();
    for number in 0..workers {
        running.spawn(worker(number));
    }
    running.join_all().await;
}

/// `POST /jobs`, so many at the same time.
pub(super) async fn one_by_one(world: &Arc<World>, plan: Plan, in_flight: usize) -> Measured {
    let meter = Meter::new(world, plan);
    let key = format!("enqueue-{in_flight}");
    together(in_flight, |_| {
        let (mut caller, meter, key) = (Caller::new(world), Arc::clone(&meter), key.clone());
        async move {
            let mut text = String::new();
            while let Some((number, _)) = meter.take(1) {
                text.clear();
                let world = Arc::clone(&caller.world);
                world.job(Lane { name: &key, room: Room::In, priority: None }, number, &mut text);
                let request = world.target.post("/jobs", &text);
                let sent = meter.now();
                match caller.call(&request).await.map(|_| ()) {
                    Ok(()) => meter.done(sent, 1),
                    Err(code) => meter.failed(code),
                }
            }
        }
    })
    .await;
    meter.finish()
}

/// `POST /jobs/bulk` with a JSON body, from some connections.
pub(super) async fn bulk_json(world: &Arc<World>, plan: Plan, shape: (usize, u64)) -> Measured {
    let (in_flight, batch) = shape;
    let meter = Meter::new(world, plan);
    together(in_flight, |_| {
        let (mut caller, meter) = (Caller::new(world), Arc::clone(&meter));
        async move {
            while let Some((first, jobs)) = meter.take(batch) {
                let world = Arc::clone(&caller.world);
                let mut text = String::from("{\"jobs\":[");
                let lane = Lane { name: "bulk-json", room: Room::In, priority: None };
                for number in first..first + jobs {
                    world.job(lane, number, &mut text);
                    text.push(',');
                }
                text.pop();
                text.push_str("]}");
                let request = world.target.post("/jobs/bulk", &text);
                let sent = meter.now();
                match caller.call(&request).await.and_then(none_refused) {
                    Ok(()) => meter.done(sent, jobs),
                    Err(code) => meter.failed(code),
                }
            }
        }
    })
    .await;
    meter.finish()
}

/// Whether every job of a bulk was taken. The text is looked at, not read: it is long.
fn none_refused(body: &[u8]) -> Result<(), Trouble> {
    let text = std::str::from_utf8(body).map_err(|_| "not-utf-8".to_owned())?;
    if text.contains("\"problem\":{") { Err("refused-in-bulk".to_owned()) } else { Ok(()) }
}

/// `POST /jobs/bulk` with a stream of lines: one to warm up, one that counts.
pub(super) async fn bulk_ndjson(world: &Arc<World>, plan: Plan) -> Measured {
    let meter = Meter::new(world, plan);
    let lane = Lane { name: "bulk-ndjson", room: Room::In, priority: None };
    for jobs in [plan.warm_up, plan.jobs] {
        let sent = meter.now();
        match stream(world, lane, (&meter, jobs)).await {
            Ok(stored) if stored > 0 => meter.done(sent, stored),
            Ok(_) => {}
            Err(code) => meter.failed(code),
        }
    }
    meter.finish()
}

/// Puts jobs into the store that are not measured. Returns how many.
pub(super) async fn fill(world: &Arc<World>, lane: Lane<'_>, jobs: u64) -> Result<u64, Trouble> {
    let meter = Meter::with(world, Plan { warm_up: 0, jobs }, Ends::WhenStopped);
    stream(world, lane, (&meter, jobs)).await
}

/// The last line of an answer.
#[derive(Deserialize)]
struct End {
    done: bool,
    created: u64,
    refused: u64,
    problem: Option<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    code: String,
}

/// Streams so many lines, or as many as there is time for. Returns how many jobs it made.
async fn stream(world: &Arc<World>, lane: Lane<'_>, much: (&Meter, u64)) -> Result<u64, Trouble> {
    let (meter, mut left) = much;
    if left == 0 {
        return Ok(0);
    }
    let broken = |error: std::io::Error| format!("connection-{}", error.kind()).replace(' ', "-");
    let mut caller = Caller::new(world);
    let wire = caller.wire().await?;
    wire.write(world.target.stream_head("/jobs/bulk").as_bytes()).await.map_err(broken)?;
    let mut text = String::new();
    while left > 0
        && let Some((first, jobs)) = meter.take(left.min(CHUNK_LINES))
    {
        left -= jobs;
        text.clear();
        for number in first..first + jobs {
            world.job(lane, number, &mut text);
            text.push('\n');
        }
        wire.chunk(text.as_bytes()).await.map_err(broken)?;
    }
    wire.chunk(b"").await.map_err(broken)?;
    let body = caller.finish().await?;
    let last = body.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let end: End = serde_json::from_slice(last).map_err(|_| "no-last-line".to_owned())?;
    match end.problem {
        Some(problem) => Err(problem.code),
        None if !end.done || end.refused > 0 => Err("refused-in-bulk".to_owned()),
        None => Ok(end.created),
    }
}
