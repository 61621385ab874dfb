//! `tagwerk work` while the server is away: on a socket, whose path stays the same when the server is started again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::cli_ran::run_alone;
use crate::server::tagwerk;
use crate::work_process::Worker;

/// The server's address, relative to its folder.
const URL: &str = "unix:t.sock";

/// A server on a socket. It is killed when it is dropped.
pub(crate) struct SocketServer(Child);

impl SocketServer {
    /// Starts it in this folder, and waits until it listens.
    pub(crate) fn start(dir: &Path) -> Self {
        let mut command = tagwerk(dir, &["serve", "--listen", URL]);
        let log = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("server.log"));
        command.stdout(Stdio::piped()).stderr(log.expect("a log file"));
        let mut child = command.spawn().expect("the binary");
        let mut stdout = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its first line");
        assert_eq!(line, format!("listening on {URL}\n"));
        Self(child)
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("to kill the server");
        self.0.wait().expect("its end");
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        // It may have been killed before.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A client command in this folder that must end well; what it printed.
pub(crate) fn client(dir: &Path, args: &[&str]) -> String {
    run_alone(dir, &[args, &["--url", URL]].concat()).expect(0).to_owned()
}

/// A worker in this folder with a line of shell.
pub(crate) fn worker(dir: &Path, args: &[&str], command: &[&str]) -> Worker {
    Worker::spawn(&mut tagwerk(dir, &[&["work", "--url", URL], args, &["--"], command].concat()))
}

fn job(dir: &Path, id: &str) -> Value {
    serde_json::from_str(&client(dir, &["jobs", "show", id, "--json"])).expect("JSON")
}

#[test]
fn a_worker_waits_for_a_server_that_is_not_there_yet() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut worker = worker(dir.path(), &["--max-jobs", "1"], &["true"]);
    worker.line("trying again");
    let _server = SocketServer::start(dir.path());
    client(dir.path(), &["enqueue", "t"]);
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    assert!(worker.has_said("the server answers again"), "{:#?}", worker.said);
    assert_eq!(job(dir.path(), "1")["status"], "completed");
}

#[test]
fn a_command_runs_on_while_the_server_is_away_and_its_report_arrives_later() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = SocketServer::start(dir.path());
    client(dir.path(), &["enqueue", "t"]);
    let script = "echo begun >&2; while [ ! -e go ]; do sleep 0.05; done; echo '\"done meanwhile\"'";
    let args = ["--max-jobs", "1", "--lease", "2s", "--worker-id", "w"];
    let mut worker = worker(dir.path(), &args, &["sh", "-c", script]);
    worker.line("begun");
    server.kill();
    worker.line("trying again");
    std::fs::write(dir.path().join("go"), "").expect("a file");
    let _server = SocketServer::start(dir.path());
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    let job = job(dir.path(), "1");
    assert_eq!((&job["status"], &job["result"]), (&"completed".into(), &"done meanwhile".into()));
    assert_eq!((&job["attempt"], &job["lease_losses"]), (&1.into(), &0.into()));
}

#[test]
fn a_worker_that_is_to_end_while_the_server_is_away_ends_at_the_second_signal() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut server = SocketServer::start(dir.path());
    client(dir.path(), &["enqueue", "t"]);
    let mut worker = worker(dir.path(), &["--lease", "2s"], &["sh", "-c", "echo begun >&2; exec sleep 1000"]);
    worker.line("begun");
    server.kill();
    worker.line("trying again");
    worker.signal("TERM");
    worker.line("claiming no more");
    worker.signal("TERM");
    assert_eq!(worker.wait(), Some(0), "{:#?}", worker.said);
    assert!(worker.has_said("outcome=not-reported"), "{:#?}", worker.said);
}
