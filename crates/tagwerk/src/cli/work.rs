//! `tagwerk work -- COMMAND`: runs a command for each job, so that any script is a worker.
//!
//! Guarantees:
//!
//! - An outcome is reported only as far as it is known: a command that was ended by a signal or by a time limit is reported
//!   as `unknown`, never as failed or given back, so that the next attempt looks before it repeats.
//! - Heartbeats, time limits and signals go on whatever the command does: a command that does not read its input, writes
//!   without end, ignores SIGTERM or leaves children behind cannot hold them up.
//! - A server that is gone costs no work: the command runs on, and its report is repeated until it arrives or nobody could
//!   want it any more. A claim whose answer was lost is repeated under its `request_id`, so no attempt is burnt.
//! - When the worker is killed, its commands are killed with it, so that the next attempt does not meet them.
//! - The command never sees the lease token, nor any setting of the server; payloads are never logged.
//!
//! Deliberately absent: checkpoints and progress from the command.

mod capture;
mod child;
mod claim;
mod guard;
mod journal;
mod pause;
mod report;
mod run;
mod shared;
mod signals;
mod verdict;

use std::ffi::OsString;
use std::sync::Arc;

use tagwerk_client::api::Seconds;
use tagwerk_client::{Address, Client, Retries};
use tagwerk_core::limits;
use tokio::task::JoinSet;

use super::chaos::Chaos;
use super::connect::{DEFAULT_URL, Secret, TOKEN_VARIABLE, Trust, builder};
use super::exit::Exit;
use super::failure::Failure;
use super::values::seconds;
pub(super) use guard::{COMMAND as GUARD_COMMAND, Guard, run as guard, this_program};
use shared::{Phase, Shared};

const HELP: &str = "\
COMMAND gets the payload on its stdin, and what is known about the job in variables:
  TAGWERK_JOB_ID, _TYPE, _QUEUE, _ATTEMPT, _RETRY_COUNT, _MAX_RETRIES, and where the job has them
  _IDEMPOTENCY_KEY, _CORRELATION_ID, _SUBJECT_KIND, _SUBJECT_ID, _SUBJECT_VERSION, _TRACEPARENT,
  _CHECKPOINT
  TAGWERK_JOB_IS_LAST_ATTEMPT    true: if it fails now, it goes to review
  TAGWERK_JOB_VERIFY             true: an earlier attempt may have done it, look first
  TAGWERK_URL                    the server

What its exit means:
  0              completed; the last line of stdout, if it is JSON up to 64 KiB, is the result
  65             failed for good: repeating is pointless
  70             nobody knows whether it was done: the next attempt is told to look first
  75, any other  failed, may succeed later
  by a signal    as 70; so is being ended by --timeout
  126, 127       the command itself is missing: the job is given back, the worker ends (code 4)
The last 4 KiB of stderr are the error; all of stderr is passed on.

SIGTERM or SIGINT: claims no more, and ends when the running commands have ended; a second one ends
the commands too. A server that is away is waited for. Each job makes one line on stderr.

Examples:
  tagwerk work --queue mail -- php send-mail.php
  tagwerk work --type import --concurrency 4 --timeout 2m -- ./import.py --verbose
  * * * * * tagwerk work --for 50s -- php send-mail.php   (cron: a worker without a service)";

/// Run a command for each job.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Work {
    /// Only from this queue; may be given several times; default: all queues
    #[arg(long, value_name = "QUEUE")]
    queue: Vec<String>,
    /// Only this type; may be given several times; default: all types
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// So many jobs at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    concurrency: u32,
    /// End a command that takes longer: SIGTERM, then SIGKILL
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<Seconds>,
    /// How long a command may take to end after SIGTERM
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    grace: Seconds,
    /// End after so many jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_jobs: Option<u64>,
    /// Claim no more after this time, and end when what runs has ended
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    time: Option<Seconds>,
    /// Length of a lease: how soon another worker gets the job when this machine dies
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "60s")]
    lease: Seconds,
    /// What the worker calls itself; default: host name and process id
    #[arg(long, value_name = "NAME")]
    worker_id: Option<String>,
    /// The server: http://HOST:PORT, https://HOST:PORT or unix:PATH
    #[arg(long, value_name = "URL", env = "TAGWERK_URL", hide_env_values = true, default_value = DEFAULT_URL, value_parser = super::connect::address)]
    url: Address,
    /// The API token, if the server wants one; better given by the environment. The command does not get it
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    token: Option<Secret>,
    #[command(flatten)]
    trust: Trust,
    /// Make the line about each job JSON
    #[arg(long)]
    json: bool,
    /// Work for nobody: test the command, as tagwerk chaos -- tagwerk work does, which can be told more
    #[arg(long)]
    chaos: bool,
    /// With --chaos: a command that counts effects, see tagwerk chaos --help
    #[arg(long, value_name = "COMMAND", requires = "chaos")]
    check: Option<String>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// As it is given on a command line.
fn decimal(time: Seconds) -> OsString {
    let ms = time.ms();
    format!("{}.{:03}", ms / 1_000, ms % 1_000).into()
}

impl Work {
    /// The test of a worker that runs the command, with a server of its own.
    fn under_test(self) -> Result<Chaos, Failure> {
        let itself = this_program().map_err(|error| {
            Failure::machine(
                format!("cannot find this program: {error}"),
                "say tagwerk chaos -- tagwerk work",
            )
        })?;
        let mut tests: Vec<OsString> = Vec::new();
        let mut works: Vec<OsString> = vec![itself.into_os_string(), "work".into()];
        works.extend(["--concurrency".into(), self.concurrency.to_string().into()]);
        works.extend(["--grace".into(), decimal(self.grace)]);
        if let Some(timeout) = self.timeout {
            works.extend(["--timeout".into(), decimal(timeout)]);
        }
        // Its jobs are of the first of what it works on.
        for (name, values) in [("--queue", &self.queue), ("--type", &self.types)] {
            tests.extend(values.first().into_iter().flat_map(|value| [name.into(), value.into()]));
            works.extend(values.iter().flat_map(|value| [name.into(), OsString::from(value)]));
        }
        if let Some(time) = self.time {
            tests.extend(["--for".into(), decimal(time)]);
        }
        tests.extend(self.check.into_iter().flat_map(|check| ["--check".into(), check.into()]));
        tests.extend(self.json.then(|| "--json".into()));
        works.extend(["--".into()].into_iter().chain(self.command));
        Chaos::of(tests, works)
    }

    /// The command.
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        if self.chaos {
            return Box::pin(self.under_test()?.run()).await;
        }
        let client = self.client()?;
        let concurrency = self.concurrency;
        let (shared, journal) = Shared::new(self, client)?;
        let shared = Arc::new(shared);
        signals::listen(&shared)?;
        let mut slots = JoinSet::new();
        for number in 0..concurrency {
            slots.spawn(claim::slot(Arc::clone(&shared), number));
        }
        let mut outcome = Ok(Exit::Done);
        while let Some(ended) = slots.join_next().await {
            let ended = ended.unwrap_or_else(|error| Err(Failure::machine(error.to_string(), String::new())));
            if let Err(failure) = ended {
                // One slot's trouble is all slots' trouble: the others finish what they have begun.
                shared.go_to(Phase::Finish);
                outcome = outcome.and(Err(failure));
            }
        }
        let never_reached = shared.trouble.never_reached();
        // Ends the signals' hold on the journal, so that it can be written to its end.
        drop(shared);
        journal.close().await;
        outcome.and_then(|exit| never_reached.map_or(Ok(exit), |told| Err(Failure::Told(told))))
    }

    /// A client that leaves repetitions to the loops here, which know when they make no sense any more.
    fn client(&self) -> Result<Client, Failure> {
        let timeout = std::time::Duration::from_secs(10);
        let builder = builder(self.url.clone(), (self.token.as_ref(), &self.trust));
        Ok(builder.retries(Retries::NONE).timeout(timeout).build()?)
    }

    /// What the worker calls itself.
    fn name(&self) -> String {
        self.worker_id.clone().unwrap_or_else(|| {
            let system = rustix::system::uname();
            let host: String = system.nodename().to_string_lossy().replace('/', "-");
            // The rest of the room is for the process id.
            let most = limits::WORKER_ID_MAX_BYTES - 16;
            let end = (0..=host.len().min(most)).rev().find(|end| host.is_char_boundary(*end)).unwrap_or(0);
            format!("{}-{}", &host[..end], std::process::id())
        })
    }
}
