//! The history of a run: every exchange with its start and its end, and whether all answers together can be true. A second
//! opinion beside [`super::model`], which knows only what clients and the store say of each job at the end of a round.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `TAGWERK_CRASH_HISTORY` | the folder in which histories are kept | only those with contradictions, in a temporary one |

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use serde_json::Value;
use tagwerk_history::{Answer as Heard, Call, History, Report, Rules, Silence, check, read_exchange};

use super::model;
use super::roles::LIMIT;
use crate::client::{Answer, Client};

/// Nanoseconds of a clock that everything in this process shares.
fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).expect("not for centuries")
}

/// Where exchanges are written down.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    last: AtomicU64,
    calls: Mutex<Vec<Call>>,
    stopped_ns: Mutex<Vec<u64>>,
}

impl Recorder {
    /// The next moment: later than every moment before.
    pub(crate) fn moment(&self) -> u64 {
        let later = |last: u64| Some(now_ns().max(last + 1));
        let before = self.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
        let before = before.expect("there is always a later one");
        // Another thread may have been faster; its moment is the later one then.
        now_ns().max(before + 1)
    }

    /// Writes down an exchange.
    pub(crate) fn keep(
        &self,
        (client, start_ns, end_ns): (usize, u64, u64),
        (request, body): (&str, &Value),
        answer: Option<&Answer>,
    ) {
        let says = |answer: &Answer, name| answer.header(name) == Some("true");
        let heard = answer.map(|answer| Heard {
            status: answer.status,
            replayed: says(answer, "report-replayed") || says(answer, "idempotency-replayed"),
            body: serde_json::from_slice(&answer.body).unwrap_or_default(),
        });
        let client = u32::try_from(client).expect("a number");
        let calls = read_exchange(request, body, heard.as_ref());
        let calls = calls.into_iter().map(|(asked, told)| Call { client, start_ns, end_ns, asked, told });
        self.calls.lock().expect("no client panicked").extend(calls);
    }

    /// `GET`, written down as the one that reads the store.
    pub(crate) fn get(&self, client: &mut Client, path: &str) -> Answer {
        let start = self.moment();
        let answer = client.get(path);
        let request = format!("GET {path}");
        self.keep((READER, start, self.moment()), (&request, &Value::Null), Some(&answer));
        answer
    }

    /// No call is under way any more, also none that got no answer.
    pub(crate) fn still(&self) {
        let now = self.moment();
        self.stopped_ns.lock().expect("no client panicked").push(now);
    }

    /// Everything so far.
    pub(crate) fn history(&self, silence: model::Silence) -> History {
        let silence = match silence {
            // When it happened is for the checker to find, up to the moment from which on nothing was under way.
            model::Silence::MeansEither | model::Silence::MayComeLate => Silence::MeansEither,
            model::Silence::MeansNo => Silence::MeansNo,
        };
        let stopped_ns = self.stopped_ns.lock().expect("no client panicked").clone();
        let (limit, most) = LIMIT;
        let limits = [(limit.to_owned(), most)].into();
        let rules = Rules { silence, stopped_ns, limits, ..Rules::default() };
        History { rules, calls: self.calls.lock().expect("no client panicked").clone() }
    }

    /// Checks everything so far and fails with the smallest contradictions, if there are any.
    pub(crate) fn must_be_explained(&self, silence: model::Silence, (name, seed): (&str, u64)) {
        let history = self.history(silence);
        let start = now_ns();
        let report = check(&history);
        let seconds = (now_ns() - start) / 1_000_000_000;
        let (calls, parts) = (history.calls.len(), report.parts);
        eprintln!("history: {calls} calls in {parts} parts, checked in {seconds} s");
        let folder = std::env::var_os("TAGWERK_CRASH_HISTORY").map(PathBuf::from);
        if report.is_explained() && folder.is_none() {
            return;
        }
        let folder = folder.unwrap_or_else(|| tempfile::tempdir().expect("a temporary folder").keep());
        let path = folder.join(format!("{name}-{seed}.jsonl"));
        let file = File::create(&path).expect("a file for the history");
        history.write(BufWriter::new(file)).expect("to write the history");
        eprintln!("history kept in {0}; cargo run --release -p tagwerk-history -- {0}", path.display());
        complain(&report, seed);
    }
}

/// The number of the client that reads the store.
const READER: usize = 9_999;

fn complain(report: &Report, seed: u64) {
    for contradiction in report.contradictions.iter().take(5) {
        eprintln!("{contradiction}");
    }
    for undecided in report.undecided.iter().take(5) {
        eprintln!("not decided: {undecided}");
    }
    assert!(
        report.is_explained(),
        "{} contradictions in the history, {} parts not decided; TAGWERK_CRASH_SEED={seed}",
        report.contradictions.len(),
        report.undecided.len()
    );
}
