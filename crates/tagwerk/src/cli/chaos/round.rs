//! One round: jobs, workers, faults, and then quiet until all jobs have ended or nobody could expect it any more.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tagwerk_client::api::request::{CancelRequest, DiscardRequest};
use tagwerk_client::api::{Seconds, Status};
use tagwerk_client::{Client, Error};
use tokio::sync::{mpsc, watch};

use super::check::{Asked, Check};
use super::crew::{Crew, Ended, Recipe};
use super::fate::{Orders, Plan, Scenario, Strike};
use super::lab::{Lab, tail};
use super::proxy::{Kill, Port, Stage};
use super::report::JobEnd;
use super::template::Template;
use crate::cli::failure::Failure;

/// How long one look at a job waits for its end.
const LOOK: Seconds = Seconds::from_ms(5_000);

/// How long effects may come after the jobs have ended, before they count as lost.
const SETTLE: Duration = Duration::from_secs(3);

/// How often they are counted meanwhile.
const RECOUNT: Duration = Duration::from_millis(250);

/// Before a worker that has ended by itself is started again.
const RESTART: Duration = Duration::from_millis(200);

/// Ends in a row without any call, after which a worker is not started again.
const IDLE_ENDS: u32 = 3;

/// What all rounds share.
pub(super) struct World {
    pub(super) lab: Lab,
    pub(super) recipe: Recipe,
    pub(super) check: Option<Check>,
    pub(super) template: Template,
    pub(super) log: PathBuf,
    pub(super) patience: Duration,
    pub(super) jobs: u64,
    /// Numbers of jobs given so far.
    pub(super) given: u64,
}

/// What a round came to.
pub(super) struct Round {
    pub(super) jobs: Vec<JobEnd>,
    pub(super) calls: u32,
    pub(super) faults: usize,
    /// Ends of workers by themselves.
    pub(super) restarts: u32,
    pub(super) remarks: Vec<String>,
}

/// How the wait for the jobs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// All jobs have ended.
    Ended,
    /// Time is over.
    Over,
    /// No worker has called in that time.
    Silent,
}

impl World {
    /// Runs it.
    pub(super) async fn round(&mut self, orders: Orders) -> Result<Round, Failure> {
        let jobs = self.enqueue().await?;
        let ids: Vec<i64> = jobs.iter().map(|(id, _)| *id).collect();
        let (kills, orders_to_kill) = mpsc::unbounded_channel();
        let stage = Arc::new(Stage {
            server: self.lab.addr,
            client: self.lab.client.clone(),
            lease: orders.lease,
            plan: Mutex::new(Plan::new(orders, ids.first().copied().unwrap_or_default(), ids.len())),
            kills,
            requests: watch::Sender::new(0),
            held: watch::Sender::new(0),
        });
        let mut shift = Shift::begin(self, &stage, (orders.scenario, orders_to_kill)).await?;
        let waited = shift.work(&ids).await?;
        self.complain(waited, orders.scenario)?;
        if waited == Waited::Ended {
            self.settle(&jobs).await?;
        }
        shift.crew.stop().await;
        let Shift { told: mut remarks, ends: restarts, .. } = shift;
        let ends = self.ends(&jobs).await?;
        self.clear(&ids).await?;
        let plan = stage.plan();
        remarks.extend(plan.remarks.iter().cloned());
        let jobs = (0..).zip(ends).map(|(number, end)| JobEnd { faults: of(&plan.strikes, number), ..end });
        Ok(Round { jobs: jobs.collect(), calls: plan.calls, faults: plan.strikes.len(), restarts, remarks })
    }

    /// New jobs: id and key.
    async fn enqueue(&mut self) -> Result<Vec<(i64, String)>, Failure> {
        let mut jobs = Vec::new();
        for _ in 0..self.jobs {
            let request = self.template.job(self.given)?;
            let key = self.template.key(self.given);
            self.given += 1;
            jobs.push((self.lab.client.enqueue(&request).await?.value.id(), key));
        }
        Ok(jobs)
    }

    /// A worker that never calls is no worker: nothing would be tested.
    fn complain(&self, waited: Waited, scenario: Scenario) -> Result<(), Failure> {
        if waited != Waited::Silent || scenario != Scenario::Calm {
            return Ok(());
        }
        let seconds = self.patience.as_secs_f64();
        Err(Failure::machine(
            format!("the worker did not call the server within {seconds} s{}", tail(&self.log)),
            "it must speak to the address in the variable TAGWERK_URL; if it starts slowly, give --patience",
        ))
    }

    /// Waits until no effect seems to be lost: a worker may do it after its report.
    async fn settle(&self, jobs: &[(i64, String)]) -> Result<(), Failure> {
        if self.check.is_none() {
            return Ok(());
        }
        let settled = async {
            loop {
                let ends = self.ends(jobs).await?;
                if ends.iter().all(|end| end.status != "completed" || end.effects != Some(0)) {
                    return Ok(());
                }
                // tidy: sleep because effects happen somewhere else, which sends no signal.
                tokio::time::sleep(RECOUNT).await;
            }
        };
        tokio::time::timeout(SETTLE, settled).await.unwrap_or(Ok(()))
    }

    /// The jobs as they are, with their effects.
    async fn ends(&self, jobs: &[(i64, String)]) -> Result<Vec<JobEnd>, Failure> {
        let (mut ends, mut asked) = (Vec::new(), Vec::new());
        for (id, key) in jobs {
            let summary = self.lab.client.job(*id).await?.value.summary;
            asked.push(Asked {
                id: *id,
                kind: summary.job_type.clone(),
                key: key.clone(),
                subject: serde_json::json!(summary.subject),
                status: summary.status.name(),
            });
            ends.push(JobEnd {
                id: *id,
                key: key.clone(),
                status: summary.status.name(),
                runs: summary.attempt,
                lease_losses: summary.lease_losses,
                error: summary.error,
                effects: None,
                faults: Vec::new(),
            });
        }
        if let Some(check) = &self.check {
            for (end, effects) in ends.iter_mut().zip(check.count(&asked).await?) {
                end.effects = Some(effects);
            }
        }
        Ok(ends)
    }

    /// Takes what has not ended out of the way of the next round.
    async fn clear(&self, ids: &[i64]) -> Result<(), Failure> {
        let client = &self.lab.client;
        for id in ids {
            match client.job(*id).await?.value.summary.status {
                Status::Failed => {
                    let reason = "the round is over".to_owned();
                    client.discard(*id, &DiscardRequest { reason, ..DiscardRequest::default() }).await?;
                }
                Status::Pending | Status::Running => {
                    client.cancel(*id, &CancelRequest::default()).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What was done to a job, and to calls that were about none.
fn of(strikes: &[Strike], number: i64) -> Vec<String> {
    let about = strikes.iter().filter(|strike| strike.job.is_none_or(|job| job == number));
    about.map(|strike| strike.told.clone()).collect()
}

/// The workers of a round, looked after.
struct Shift<'a> {
    crew: Crew<'a>,
    ports: Vec<Port>,
    stage: Arc<Stage>,
    kills: mpsc::UnboundedReceiver<Kill>,
    scenario: Scenario,
    patience: Duration,
    log: PathBuf,
    /// Ends by itself, and those in a row in which it has not called.
    ends: u32,
    idle: u32,
    /// Requests when the last one ended.
    before: u64,
    told: Vec<String>,
}

impl<'a> Shift<'a> {
    async fn begin(
        world: &'a World,
        stage: &Arc<Stage>,
        (scenario, kills): (Scenario, mpsc::UnboundedReceiver<Kill>),
    ) -> Result<Self, Failure> {
        let mut crew = Crew::new(&world.recipe, scenario.workers());
        let mut ports = Vec::new();
        for worker in 0..scenario.workers() {
            let port = Port::open(stage, worker).await;
            let port = port.map_err(|error| Failure::machine(format!("no port can be had: {error}"), ""))?;
            crew.start(worker, port.addr)?;
            ports.push(port);
        }
        Ok(Self {
            crew,
            ports,
            stage: Arc::clone(stage),
            kills,
            scenario,
            patience: world.patience,
            log: world.log.clone(),
            ends: 0,
            idle: 0,
            before: 0,
            told: Vec::new(),
        })
    }

    /// Until all jobs have ended, or nobody could expect it any more.
    async fn work(&mut self, ids: &[i64]) -> Result<Waited, Failure> {
        let ended = ended(self.stage.client.clone(), Arc::clone(&self.stage), ids);
        let over = over(Arc::clone(&self.stage), self.patience);
        let (mut ended, mut over) = (std::pin::pin!(ended), std::pin::pin!(over));
        loop {
            tokio::select! {
                outcome = &mut ended => return outcome.map(|()| Waited::Ended).map_err(Failure::from),
                waited = &mut over => return Ok(waited),
                Some((worker, dead)) = self.kills.recv() => {
                    self.crew.kill(worker).await;
                    // The call that it was killed at may be gone with its connection.
                    let _ = dead.send(());
                    self.start(worker)?;
                }
                Some(ended) = self.crew.endings.recv() => self.again(&ended).await?,
            }
        }
    }

    fn start(&mut self, worker: usize) -> Result<(), Failure> {
        let port: Option<SocketAddr> = self.ports.get(worker).map(|port| port.addr);
        port.map_or(Ok(()), |port| self.crew.start(worker, port))
    }

    /// A worker has ended by itself: started again, as whoever looks after it would.
    async fn again(&mut self, ended: &Ended) -> Result<(), Failure> {
        self.crew.forget(ended.worker);
        let requests = *self.stage.requests.borrow();
        self.idle = if requests == self.before { self.idle + 1 } else { 0 };
        self.before = requests;
        self.ends += 1;
        let status = ended.status.map_or_else(|| "no status".to_owned(), |status| status.to_string());
        if self.idle < IDLE_ENDS {
            // tidy: sleep because who looks after workers starts them again after a pause.
            tokio::time::sleep(RESTART).await;
            return self.start(ended.worker);
        }
        let told = format!("the worker ends without calling the server ({status})");
        if self.scenario == Scenario::Calm && requests == 0 {
            return Err(Failure::machine(
                format!("{told}{}", tail(&self.log)),
                "run it by hand against a server; it must go on until it gets SIGTERM",
            ));
        }
        self.told.push(format!("{told} and was not started again"));
        Ok(())
    }
}

/// Returns when all jobs have ended and no call is held back any more.
async fn ended(client: Client, stage: Arc<Stage>, ids: &[i64]) -> Result<(), Error> {
    for id in ids {
        loop {
            let job = client.wait_for_job(*id, LOOK).await?.value.summary;
            if !matches!(job.status, Status::Pending | Status::Running) {
                break;
            }
        }
    }
    // A sender that is shared does not end.
    drop(stage.held.subscribe().wait_for(|held| *held == 0).await);
    Ok(())
}

/// Returns when time is over. It counts from the first call, since workers may start slowly.
async fn over(stage: Arc<Stage>, patience: Duration) -> Waited {
    let mut requests = stage.requests.subscribe();
    if tokio::time::timeout(patience, requests.wait_for(|requests| *requests > 0)).await.is_err() {
        return Waited::Silent;
    }
    // tidy: sleep because this is the limit itself.
    tokio::time::sleep(patience).await;
    Waited::Over
}
