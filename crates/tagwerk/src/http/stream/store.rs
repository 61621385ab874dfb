//! Decodes batches of lines and has them stored, one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use tagwerk_api::door::{Door, NewJob};
use tagwerk_api::problem::{Code, Problem, Refusal};
use tagwerk_api::{OnDuplicate, OnMismatch};
use tagwerk_core::access::Reach;
use tagwerk_core::limits;
use tagwerk_engine::command::{BulkMode, EngineError, Enqueue, EnqueueJob};
use tagwerk_engine::message::EnqueueAnswer;
use tokio::sync::{mpsc, oneshot};

use super::super::ask::slot;
use super::super::problem::{self, Refused};
use super::super::reply::off_thread;
use super::super::{App, decode};
use super::lines::Batch;
use super::told::{Failure, Told};

/// Lines that one command of the engine stands for.
#[derive(Debug, Default)]
struct Part {
    jobs: Vec<EnqueueJob>,
    /// In the order of the lines: its number, and why it is refused unless it is a job.
    lines: Vec<(u64, Option<Box<Problem>>)>,
}

impl Part {
    fn put(&mut self, line: u64, read: Result<NewJob, Refusal>) {
        let refused = match read {
            Ok(job) => {
                self.jobs.push(decode::new_job(job));
                None
            }
            Err(refusal) => {
                let mut problem = Problem::from(refusal);
                problem.errors.truncate(limits::STREAM_LINE_ERRORS_MAX);
                Some(Box::new(problem))
            }
        };
        self.lines.push((line, refused));
    }

    fn first_line(&self) -> u64 {
        self.lines.first().map_or(0, |(line, _)| *line)
    }
}

/// A part whose jobs are being stored.
struct Stored {
    part: Part,
    answer: oneshot::Receiver<Result<EnqueueAnswer, EngineError>>,
}

/// Takes batches until there are no more, or until one fails as a whole.
pub(super) async fn store(
    (app, reach): (&App, Option<Arc<Reach>>),
    mut batches: mpsc::Receiver<Batch>,
    mut told: Told,
) -> (Told, Option<Failure>) {
    let failure = store_all((app, reach), &mut batches, &mut told).await.err();
    (told, failure)
}

async fn store_all(
    (app, reach): (&App, Option<Arc<Reach>>),
    batches: &mut mpsc::Receiver<Batch>,
    told: &mut Told,
) -> Result<(), Failure> {
    let mut under_way: Option<Stored> = None;
    while let Some(batch) = next(batches, &mut under_way, told).await? {
        let (door, first) = (Arc::clone(&app.door), batch.lines().next().map_or(0, |(line, _)| line));
        // Decoded while the part before is stored, sent when that one is in: whatever comes after a failure is not in.
        let decoded = off_thread(move || parts(&door, &batch)).await;
        for mut part in decoded.map_err(|refused| failed(first, refused))? {
            if let Some(Stored { part, answer }) = under_way.take() {
                tell(part, answer.await, told).await?;
            }
            let (reply, answer) = slot();
            let command =
                Enqueue { jobs: std::mem::take(&mut part.jobs), mode: BulkMode::Each, reach: reach.clone() };
            if command.jobs.is_empty() {
                drop(reply.answer(Ok(Vec::new())));
            } else {
                app.engine.enqueue(command, reply);
            }
            under_way = Some(Stored { part, answer });
        }
    }
    match under_way {
        Some(Stored { part, answer }) => tell(part, answer.await, told).await,
        None => Ok(()),
    }
}

/// Waits for a batch, and tells of the part that is under way when it is in.
async fn next(
    batches: &mut mpsc::Receiver<Batch>,
    under_way: &mut Option<Stored>,
    told: &mut Told,
) -> Result<Option<Batch>, Failure> {
    while let Some(Stored { part, mut answer }) = under_way.take() {
        tokio::select! {
            biased;
            results = &mut answer => tell(part, results, told).await?,
            batch = batches.recv() => {
                *under_way = Some(Stored { part, answer });
                return Ok(batch);
            }
        }
    }
    Ok(batches.recv().await)
}

/// What the engine says about a part; nothing if it has dropped the command, which it does when it panics.
type Answered = Result<Result<EnqueueAnswer, EngineError>, oneshot::error::RecvError>;

/// Tells what became of the lines of a part.
async fn tell(part: Part, answered: Answered, told: &mut Told) -> Result<(), Failure> {
    let results = answered.unwrap_or(Err(EngineError::Internal));
    let results = results.map_err(|error| failed(part.first_line(), error.into()))?;
    let mut results =
        results.into_iter().map(|result| result.map_err(|refusal| Box::new(problem::refusal(refusal))));
    for (line, refused) in part.lines {
        match refused.map_or_else(|| results.next(), |problem| Some(Err(problem))) {
            Some(Ok(enqueued)) => told.stored(line, &enqueued),
            Some(Err(problem)) => told.refused(line, *problem),
            None => return Err(failed(line, Refused::of(Code::InternalError))),
        }
        told.send_if_large().await;
    }
    told.send().await;
    Ok(())
}

fn failed(line: u64, refused: Refused) -> Failure {
    Failure { line, problem: refused.into_problem() }
}

/// What the lines of a batch say. A new part begins where a key repeats and its lines ask for more than the job that has
/// it: then it matters that the earlier line has been stored, as it would have been by a call of its own.
fn parts(door: &Door, batch: &Batch) -> Vec<Part> {
    let mut parts = vec![Part::default()];
    // Whether a line with this key of this part asks for more.
    let mut keys: HashMap<String, bool> = HashMap::new();
    for (line, bytes) in batch.lines() {
        let read = match bytes {
            Some(bytes) => door.enqueue_line(bytes),
            None => Some(Err(too_long(door))),
        };
        let Some(read) = read else { continue };
        if let Ok(NewJob { idempotency_key: Some(key), .. }) = &read {
            let asks = read.as_ref().is_ok_and(asks_for_more);
            if keys.get(key).is_some_and(|before| *before || asks) {
                parts.push(Part::default());
                keys.clear();
            }
            *keys.entry(key.clone()).or_default() |= asks;
        }
        if let Some(part) = parts.last_mut() {
            part.put(line, read);
        }
    }
    parts.retain(|part| !part.lines.is_empty());
    parts
}

/// Whether the line does more with a known key than to find its job.
fn asks_for_more(job: &NewJob) -> bool {
    let duplicate = !matches!(job.on_duplicate, None | Some(OnDuplicate::Existing));
    duplicate || matches!(job.on_mismatch, Some(OnMismatch::Reject))
}

fn too_long(door: &Door) -> Refusal {
    let payload = door.limits().payload_max_bytes;
    let most = payload + limits::STREAM_LINE_EXTRA_BYTES;
    Refusal::new(
        Code::BodyTooLarge,
        format!(
            "the line has more than {most} bytes, and a payload may have {payload}; keep large data elsewhere"
        ),
    )
}
