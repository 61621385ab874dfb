//! Effects of handlers, over the queue in memory.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tagwerk_client::api::Status;
use tagwerk_client::{Client, Context, Failure, Fake, FakeJob, NewJob, Task, Worker, WorkerBuilder};

#[derive(Serialize, Deserialize)]
struct Ship;

impl Task for Ship {
    const TYPE: &'static str = "ship";
}

/// What the other side has done: the keys that it was given.
type Shipped = Arc<Mutex<Vec<String>>>;

fn builder() -> WorkerBuilder {
    Worker::builder(Client::new("http://127.0.0.1:9").unwrap(), "w")
}

/// Whether a handler can find out what was done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    LooksUp,
    CannotKnow,
}

/// A handler that ships, and then does with its nth call, from 1, what `then` says.
fn shipping(
    builder: WorkerBuilder,
    sight: Sight,
    then: impl Fn(usize) -> Result<(), Failure> + Clone + Send + Sync + 'static,
) -> (Worker, Shipped) {
    let shipped = Shipped::default();
    let seen = Arc::clone(&shipped);
    let handler = move |job: Context, _: Ship| {
        let (there, here, then) = (Arc::clone(&shipped), Arc::clone(&shipped), then.clone());
        async move {
            let mut effect = job.effect("create-shipment");
            if sight == Sight::LooksUp {
                effect = effect.look_up(|key| async move {
                    let found = there.lock().unwrap().iter().position(|known| *known == key);
                    Ok(found)
                });
            }
            effect
                .run(|key| async move {
                    let mut shipped = here.lock().unwrap();
                    shipped.push(key);
                    let number = shipped.len();
                    drop(shipped);
                    then(number).map(|()| number - 1)
                })
                .await
        }
    };
    (builder.on(handler).build(), seen)
}

async fn worked(worker: &Worker) -> FakeJob {
    let fake = Fake::new();
    let id = fake.enqueue(NewJob::of(&Ship).unwrap());
    fake.run(worker).await;
    fake.job(id).unwrap()
}

#[tokio::test]
async fn what_is_in_doubt_is_looked_up_and_not_done_again() {
    let lost = |_| Err(Failure::transient("no answer from the carrier"));
    let (worker, shipped) = shipping(builder().handles_verify(), Sight::LooksUp, lost);
    let job = worked(&worker).await;
    assert_eq!((job.status, job.attempt, job.result.as_deref()), (Status::Completed, 2, Some("0")));
    assert_eq!(shipped.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_certainly_did_not_happen_is_done_again_under_the_same_key() {
    let busy = |n| if n < 3 { Err(Failure::transient("503").did_not_happen()) } else { Ok(()) };
    let (worker, shipped) = shipping(builder(), Sight::CannotKnow, busy);
    let job = worked(&worker).await;
    assert_eq!((job.status, job.attempt, job.result.as_deref()), (Status::Completed, 3, Some("2")));
    let shipped = shipped.lock().unwrap();
    assert!(shipped.len() == 3 && shipped.iter().all(|key| *key == shipped[0]), "{shipped:?}");
}

#[tokio::test]
async fn a_blind_worker_sends_what_is_in_doubt_to_review() {
    let died = |_| panic!("out of memory");
    let (worker, shipped) = shipping(builder(), Sight::LooksUp, died);
    let job = worked(&worker).await;
    assert_eq!((job.status, job.attempt, job.open_effects()), (Status::Failed, 1, vec!["create-shipment"]));
    assert_eq!(shipped.lock().unwrap().len(), 1);
    // One that knows of doubt, and cannot look up.
    let (worker, shipped) = shipping(builder().handles_verify(), Sight::CannotKnow, died);
    let job = worked(&worker).await;
    assert_eq!((job.status, job.open_effects()), (Status::Failed, vec!["create-shipment"]));
    assert!(job.error.as_deref().is_some_and(|error| error.contains("effect-1")), "{:?}", job.error);
    assert_eq!(shipped.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_done_is_skipped_by_every_later_attempt() {
    let count = Arc::new(Mutex::new(0));
    let done = Arc::clone(&count);
    let handler = move |job: Context, _: Ship| {
        let count = Arc::clone(&count);
        async move {
            let effect = job.effect("pay").key("order-7");
            effect
                .run(|key| async move {
                    assert_eq!(key, "order-7");
                    *count.lock().unwrap() += 1;
                    Ok(())
                })
                .await?;
            if job.attempt() < 3 { Err(Failure::transient("later")) } else { Ok("paid") }
        }
    };
    let job = worked(&builder().on(handler).build()).await;
    assert_eq!((job.status, job.result.as_deref()), (Status::Completed, Some("\"paid\"")));
    assert_eq!(*done.lock().unwrap(), 1);
}

#[tokio::test]
async fn nobody_says_that_all_is_well_while_an_effect_is_open() {
    let handler = |job: Context, _: Ship| async move {
        drop(job.effect::<()>("pay").run(|_| async { Err(Failure::transient("who knows")) }).await);
        Ok(())
    };
    let job = worked(&builder().on(handler).build()).await;
    assert_eq!((job.status, job.attempt, job.open_effects()), (Status::Failed, 1, vec!["pay"]));
}
