//! How soon a waiting claim starts a job, on a queue where nothing else happens.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::caller::{Caller, Trouble};
use super::meter::{Measured, Meter, Plan};
use super::report::Latency;
use super::workers::{claim_request, claimed, complete_request};
use super::world::{Lane, Room, World};

/// Between a claim and the job that it is to get: the claim is to wait, the server to have nothing to do.
const PAUSE: Duration = Duration::from_millis(10);

/// Longest wait of a claim. A job comes far sooner.
const WAIT_SECONDS: u64 = 20;

/// What the worker tells the producer.
enum Said {
    /// A claim goes out.
    Claims,
    /// A job is there, since this moment.
    Started(Duration),
}

/// From sending an enqueue to having the job in a claim that waits; and what a request that does nothing takes.
pub(super) async fn latency(world: &Arc<World>, plan: Plan) -> (Measured, Option<Latency>) {
    let meter = Meter::new(world, plan);
    let (says, mut heard) = mpsc::channel(1);
    let worker = tokio::spawn(work(Caller::new(world), (Arc::clone(&meter), says)));
    let mut producer = Caller::new(world);
    let mut floor = Vec::new();
    let nothing = world.target.request("GET /livez", None);
    while let Some((number, _)) = meter.take(1) {
        if !matches!(heard.recv().await, Some(Said::Claims)) {
            break;
        }
        // tidy: sleep because an idle queue is what is measured
        tokio::time::sleep(PAUSE).await;
        let sent = meter.now();
        if let Err(code) = producer.call(&nothing).await.map(|_| ()) {
            meter.failed(code);
        }
        floor.push(u32::try_from(meter.now().saturating_sub(sent).as_micros()).unwrap_or(u32::MAX));
        match start(&mut producer, (&meter, number), &mut heard).await {
            Ok(Some(times)) => meter.done_at(times, 1),
            Ok(None) => break,
            Err(code) => {
                meter.failed(code);
                break;
            }
        }
    }
    // Its last claim goes with its connection.
    worker.abort();
    (meter.finish(), Latency::of(floor))
}

/// Enqueues a job and waits until it is started. When it was sent and when it started; `None`: the worker is gone.
async fn start(
    producer: &mut Caller,
    of: (&Meter, u64),
    heard: &mut mpsc::Receiver<Said>,
) -> Result<Option<(Duration, Duration)>, Trouble> {
    let (meter, number) = of;
    let world = Arc::clone(&producer.world);
    let mut text = String::new();
    world.job(Lane { name: "latency", room: Room::Idle, priority: None }, number, &mut text);
    let request = world.target.post("/jobs", &text);
    let sent = meter.now();
    producer.call(&request).await?;
    loop {
        match heard.recv().await {
            Some(Said::Started(at)) => return Ok(Some((sent, at))),
            // The wait before had just come to its end.
            Some(Said::Claims) => {}
            None => return Ok(None),
        }
    }
}

async fn work(mut caller: Caller, to: (Arc<Meter>, mpsc::Sender<Said>)) {
    let (meter, says) = to;
    while says.send(Said::Claims).await.is_ok() {
        let request = claim_request(&caller.world, Room::Idle, (0, WAIT_SECONDS));
        let held = match caller.call(&request).await.and_then(claimed) {
            Ok(Some(held)) => held,
            Ok(None) => continue,
            Err(code) => return meter.failed(code),
        };
        if says.send(Said::Started(meter.now())).await.is_err() {
            return;
        }
        let request = complete_request(&caller.world, &held);
        if let Err(code) = caller.call(&request).await.map(|_| ()) {
            meter.failed(code);
        }
    }
}
