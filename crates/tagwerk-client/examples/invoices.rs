//! A producer and a worker in one program.
//!
//! ```sh
//! cargo run --release -- serve
//! cargo run -p tagwerk-client --example invoices
//! ```
//!
//! Makes three jobs, does them two at a time, ends with Ctrl-C or when all are done. Run it twice: the second time the keys find the
//! jobs of the first, so nothing is done again.

use std::time::Duration;

use tagwerk_client::api::Status;
use tagwerk_client::{Client, Context, Event, Failure, NewJob, Producer, Task, Worker};

#[derive(serde::Serialize, serde::Deserialize)]
struct SendInvoice {
    number: u64,
    to: String,
}

impl Task for SendInvoice {
    const TYPE: &'static str = "send-invoice";
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::new("http://127.0.0.1:7070")?;
    let producer = Producer::new(client.clone());
    let mut ids = Vec::new();
    for number in 1..=3 {
        let invoice = SendInvoice { number, to: "ada@example.com".to_owned() };
        let job = NewJob::of(&invoice)?
            .key(format!("invoice-{number}"))
            .queue("mail")
            .subject("invoice", number.to_string());
        ids.push(producer.enqueue(job).await?.id());
    }

    let worker = Worker::builder(client.clone(), format!("invoices-{}", std::process::id()))
        .queue("mail")
        .concurrency(2)
        .on(send)
        .listen(|event| match event {
            Event::Trouble(error) => eprintln!("{error}"),
            Event::Failed(id, failure) => eprintln!("job {id}: {failure}"),
            event => println!("{event:?}"),
        })
        .build();
    let all_done = async {
        for id in ids {
            // Waits up to a minute each time; an error is the worker's to tell.
            while client
                .wait_for_job(id, tagwerk_client::api::Seconds::from_ms(60_000))
                .await
                .is_ok_and(|job| matches!(job.value.summary.status, Status::Pending | Status::Running))
            {
            }
        }
    };
    let tally = worker
        .run(async {
            tokio::select! {
                () = all_done => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        })
        .await?;
    println!("{tally:?}");
    Ok(())
}

async fn send(context: Context, invoice: SendInvoice) -> Result<String, Failure> {
    if context.verify() {
        // An earlier attempt may have sent it. A real worker asks its mail provider here.
        return Err(Failure::permanent("was it sent? somebody must look"));
    }
    if !invoice.to.contains('@') {
        return Err(Failure::permanent("no address"));
    }
    // The mail provider takes its time. With `?` any of its errors would be a transient failure.
    // tidy: sleep because it stands for work
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(format!("sent {} to {}", invoice.number, invoice.to))
}
