//! Side effects of the SDK's worker, at the real server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tagwerk_client::{Context, Failure, Producer};

use super::{Cut, Dice, Echo, End, Proxy, Server, builder, client, completed, echo, job, json, list, run};

/// What the other side has done, by the keys that it was given. It honours no keys, and can be asked.
type Shipped = Arc<Mutex<Vec<String>>>;

fn find(shipped: &Shipped, key: &str) -> Option<usize> {
    shipped.lock().expect("no panic").iter().position(|known| known == key)
}

fn ship(shipped: &Shipped, key: String) -> usize {
    let mut shipped = shipped.lock().expect("no panic");
    shipped.push(key);
    shipped.len() - 1
}

/// Ships the job, and says what `after` says.
async fn shipment(
    job: &Context,
    shipped: &Shipped,
    after: impl Future<Output = ()>,
) -> Result<usize, Failure> {
    let (there, here) = (Arc::clone(shipped), Arc::clone(shipped));
    let effect = job.effect("create-shipment").look_up(|key| async move { Ok(find(&there, &key)) });
    effect
        .run(|key| async move {
            let number = ship(&here, key);
            after.await;
            Ok(number)
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_after_the_effect_leaves_it_to_the_next_one_to_look_it_up() {
    let server = Server::start();
    let id = Producer::new(client(&server.url())).enqueue(echo(1)).await.expect("a job").id();
    let shipped = Shipped::default();
    let (seen, acted) = (Arc::clone(&shipped), Arc::new(tokio::sync::Notify::new()));
    let bell = Arc::clone(&acted);
    let handler = move |job: Context, _: Echo| {
        let (shipped, bell) = (Arc::clone(&seen), Arc::clone(&bell));
        async move {
            let never = async {
                bell.notify_one();
                std::future::pending::<()>().await;
            };
            shipment(&job, &shipped, never).await
        }
    };
    let dies = builder(client(&server.url())).handles_verify().on(handler).build();
    tokio::select! {
        ended = dies.run(std::future::pending()) => panic!("it does not end: {ended:?}"),
        () = acted.notified() => {}
    }
    let seen = Arc::clone(&shipped);
    let handler = move |job: Context, _: Echo| {
        let shipped = Arc::clone(&seen);
        async move {
            assert!(job.verify());
            shipment(&job, &shipped, std::future::ready(())).await
        }
    };
    assert_eq!(run(1, builder(client(&server.url())).handles_verify().on(handler)).await, completed(1));
    assert_eq!(shipped.lock().expect("no panic").len(), 1);
    let job = job(&mut server.client(), id);
    assert_eq!((&job["result"], &job["lease_losses"]), (&json!(0), &json!(1)), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_proxy_that_cuts_each_effect_happens_once() {
    const JOBS: u32 = 20;
    let server = Server::start();
    let mut dice = Dice::new(crate::crash::seed(), 1);
    let loud: Vec<Cut> = Cut::ALL.into_iter().filter(|cut| *cut != Cut::Silent).collect();
    let proxy = Proxy::new(server.addr(), move || {
        let cut = if dice.percent(25) { *dice.pick(&loud) } else { Cut::None };
        (cut, End::Fin)
    });
    let producer = Producer::new(client(&server.url()));
    for n in 0..JOBS {
        producer.enqueue(echo(n.into())).await.expect("a job");
    }
    let shipped = Shipped::default();
    let seen = Arc::clone(&shipped);
    let handler = move |job: Context, _: Echo| {
        let shipped = Arc::clone(&seen);
        async move { shipment(&job, &shipped, std::future::ready(())).await }
    };
    let url = format!("http://{}", proxy.addr());
    let worker = builder(client(&url)).concurrency(4).lease(Duration::from_mins(1)).on(handler);
    assert_eq!(run(JOBS, worker).await, completed(JOBS.into()));
    let keys = shipped.lock().expect("no panic").clone();
    assert_eq!(keys.len(), usize::try_from(JOBS).expect("small"));
    let jobs = list(&mut server.client(), "?queue=q");
    assert!(jobs.iter().all(|job| job["status"] == "completed" && job["attempt"] == 1), "{jobs:#?}");
    assert!(proxy.cuts() > 0, "nothing was cut");
}

/// A handler that does not know whether it happened must not say that all is well.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_ignores_an_open_effect_ends_in_review() {
    let server = Server::start();
    let producer = Producer::new(client(&server.url()));
    for n in 0..2 {
        producer.enqueue(echo(n)).await.expect("a job");
    }
    let handler = |job: Context, Echo { n }| async move {
        drop(job.effect::<()>("pay").run(|_| async { Err(Failure::transient("who knows")) }).await);
        // Neither of them is true.
        if n == 0 { Ok(()) } else { Err(Failure::release(Duration::ZERO, "not begun")) }
    };
    let tally = run(2, builder(client(&server.url())).on(handler)).await;
    assert_eq!(tally.completed + tally.released, 0, "{tally:?}");
    assert_eq!(tally.failed + tally.lost, 2, "{tally:?}");
    for job in list(&mut server.client(), "?queue=q") {
        assert_eq!(job["failure"]["reason"], "outcome_unknown", "{job}");
        assert_eq!(job["effects_in_doubt"][0]["name"], "pay", "{job}");
    }
}
