//! Scenarios of workers: drain in bulk, and one by one.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;

use super::caller::{Caller, Trouble};
use super::meter::{Ends, Measured, Meter, Plan};
use super::producers::together;
use super::world::{Room, World};

/// A job that was handed out.
#[derive(Debug, Deserialize)]
pub(super) struct Held {
    id: i64,
    lease: String,
}

/// Answer to a bulk report with a claim.
#[derive(Debug, Deserialize)]
struct Loop {
    #[serde(default)]
    results: Vec<Entry>,
    #[serde(default)]
    jobs: Vec<Held>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    status: u16,
}

/// `POST /jobs/report/bulk` with a claim: reports what it holds and takes the next, in one round trip.
pub(super) async fn drain_bulk(world: &Arc<World>, plan: Plan, shape: (usize, u64)) -> Measured {
    let (workers, batch) = shape;
    let meter = Meter::new(world, plan);
    let queue = world.queue(Room::Work);
    together(workers, |number| {
        let (caller, meter, queue) = (Caller::new(world), Arc::clone(&meter), queue.clone());
        async move { worker_loop(caller, (&meter, &queue), (number, batch)).await }
    })
    .await;
    meter.finish()
}

/// Takes jobs and completes them until there are none. Not measured.
pub(super) async fn clear(world: &Arc<World>, room: Room, jobs: u64) {
    let meter = Meter::with(world, Plan { warm_up: 0, jobs }, Ends::Never);
    worker_loop(Caller::new(world), (&meter, &world.queue(room)), (0, 1_000)).await;
}

async fn worker_loop(mut caller: Caller, of: (&Meter, &str), shape: (usize, u64)) {
    let ((meter, queue), (number, batch)) = (of, shape);
    let mut held: Vec<Held> = Vec::new();
    loop {
        // What is held is reported in any case; no more is claimed when it is over.
        let (_, wanted) = meter.take(batch).unwrap_or_default();
        if held.is_empty() && wanted == 0 {
            return;
        }
        let request = loop_request(&caller.world, (&held, queue), (number, wanted));
        let sent = meter.now();
        let answer = caller.call(&request).await.and_then(|body| {
            serde_json::from_slice::<Loop>(body).map_err(|error| format!("not-understood-{error}"))
        });
        match answer {
            Ok(answer) => {
                let good = answer.results.iter().filter(|entry| entry.status == 200).count() as u64;
                if good > 0 {
                    meter.done(sent, good);
                }
                for entry in answer.results.iter().filter(|entry| entry.status != 200) {
                    meter.failed(format!("status-{}", entry.status));
                }
                held = answer.jobs;
                if held.is_empty() {
                    return;
                }
            }
            // The reports are sent again: they carry their tokens. What a lost answer held runs out.
            Err(code) => {
                meter.failed(code);
                if !meter.goes_on() {
                    return;
                }
            }
        }
    }
}

fn loop_request(world: &World, of: (&[Held], &str), shape: (usize, u64)) -> String {
    let ((held, queue), (number, batch)) = (of, shape);
    let mut body = String::with_capacity(100 + 90 * held.len());
    body.push_str("{\"reports\":[");
    for Held { id, lease } in held {
        // Writing to memory does not fail.
        write!(body, r#"{{"id":{id},"lease":"{lease}","outcome":"completed"}},"#).ok();
    }
    if !held.is_empty() {
        body.pop();
    }
    body.push(']');
    if batch > 0 {
        let kind = &world.kind;
        write!(
            body,
            r#","claim":{{"worker_id":"bench-{number}","queues":["{queue}"],"types":["{kind}"],"max_jobs":{batch}}}"#
        )
        .ok();
    }
    body.push('}');
    world.target.post("/jobs/report/bulk", &body)
}

/// `POST /jobs/claim`, then `POST /jobs/{id}/complete`, by so many workers.
pub(super) async fn drain_single(world: &Arc<World>, plan: Plan, workers: usize) -> Measured {
    let meter = Meter::new(world, plan);
    together(workers, |number| {
        let (mut caller, meter) = (Caller::new(world), Arc::clone(&meter));
        async move {
            while meter.take(1).is_some() {
                let sent = meter.now();
                match claim_and_complete(&mut caller, number).await {
                    Ok(true) => meter.done(sent, 1),
                    Ok(false) => return,
                    Err(code) => meter.failed(code),
                }
            }
        }
    })
    .await;
    meter.finish()
}

/// Whether there was a job.
async fn claim_and_complete(caller: &mut Caller, number: usize) -> Result<bool, Trouble> {
    let request = claim_request(&caller.world, Room::Work, (number, 0));
    let Some(held) = claimed(caller.call(&request).await?)? else { return Ok(false) };
    let request = complete_request(&caller.world, &held);
    caller.call(&request).await?;
    Ok(true)
}

pub(super) fn claim_request(world: &World, room: Room, of: (usize, u64)) -> String {
    let (kind, queue, (number, wait)) = (&world.kind, world.queue(room), of);
    let body = format!(
        r#"{{"worker_id":"bench-{number}","queues":["{queue}"],"types":["{kind}"],"wait_seconds":{wait}}}"#
    );
    world.target.post("/jobs/claim", &body)
}

pub(super) fn complete_request(world: &World, held: &Held) -> String {
    world.target.post(&format!("/jobs/{}/complete", held.id), &format!(r#"{{"lease":"{}"}}"#, held.lease))
}

pub(super) fn claimed(body: &[u8]) -> Result<Option<Held>, Trouble> {
    serde_json::from_slice(body).map_err(|error| format!("not-understood-{error}"))
}
