//! The real server in a folder of its own, on a free port.
//!
//! ```text
//! let mut server = Server::start();
//! let job = server.post("/jobs", &json!({"type": "t"})).expect(201);
//! server.restart(); // kill -9 and start again on the same file
//! assert_eq!(server.get(&format!("/jobs/{}", job["id"])).expect(200)["status"], "pending");
//! ```
//!
//! A server is killed by its own process id when it is dropped. Nothing here sleeps: `start` returns when the server
//! has said that it listens.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Answer, Client};

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_tagwerk");

/// How a server is to be started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    store: Option<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    /// The program, with what runs it; empty: the binary.
    under: Vec<String>,
}

impl Options {
    /// Another program, with what runs it before it: `setpriv … /path/of/tagwerk`.
    pub(crate) fn under(mut self, words: Vec<String>) -> Self {
        self.under = words;
        self
    }

    /// `tagwerk` with these arguments in this folder, as these options say.
    fn command(&self, dir: &Path, args: &[&str]) -> Command {
        let Some((program, rest)) = self.under.split_first() else { return tagwerk(dir, args) };
        let rest: Vec<&str> = rest.iter().map(String::as_str).chain(args.iter().copied()).collect();
        run(program, (dir, &rest))
    }

    /// A setting, `max_retries=0`.
    pub(crate) fn set(mut self, setting: &str) -> Self {
        self.args.extend(["--set".to_owned(), setting.to_owned()]);
        self
    }

    /// Another file than `tagwerk.db` in its folder.
    pub(crate) fn store(mut self, file: &str) -> Self {
        self.store = Some(file.to_owned());
        self
    }

    /// A variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// `tagwerk` with these arguments in this folder, with nothing of the caller's environment that configures it.
pub(crate) fn tagwerk(dir: &Path, args: &[&str]) -> Command {
    run(BINARY, (dir, args))
}

fn run(program: &str, (dir, args): (&Path, &[&str])) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars() {
        if name.starts_with("TAGWERK_") {
            command.env_remove(name);
        }
    }
    command.args(args).current_dir(dir).stdin(Stdio::null());
    command
}

/// A running server.
pub(crate) struct Server {
    options: Options,
    dir: TempDir,
    process: Option<Process>,
    addr: SocketAddr,
}

struct Process {
    child: Child,
    /// Kept, so that the server's output has somewhere to go.
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// A server with default settings on an empty store.
    pub(crate) fn start() -> Self {
        Self::with(Options::default())
    }

    /// A server with these options on an empty store.
    pub(crate) fn with(options: Options) -> Self {
        Self::in_dir(tempfile::tempdir().expect("a temporary folder"), options)
    }

    /// A server on what is in this folder: `tagwerk.db`, `tagwerk.toml`.
    pub(crate) fn in_dir(dir: TempDir, options: Options) -> Self {
        let (process, addr) = launch(dir.path(), &options);
        Self { options, dir, process: Some(process), addr }
    }

    /// Its folder.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its database file.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("tagwerk.db")
    }

    /// Its store, as `--store` takes it.
    pub(crate) fn store(&self) -> String {
        store_of(&self.options)
    }

    /// The same program in its folder, with other arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.options.command(self.dir(), args)
    }

    /// Where it listens.
    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`, or https
    pub(crate) fn url(&self) -> String {
        let is_encrypted = self.options.args.iter().any(|arg| arg.starts_with("server.tls.cert="));
        format!("{}://{}", if is_encrypted { "https" } else { "http" }, self.addr)
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("a running server").child.id()
    }

    /// Everything it has logged since the folder was made.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(log_file(self.dir.path())).unwrap_or_default()
    }

    /// A client with a connection of its own.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.addr)
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.child.kill().expect("to kill the server");
            process.child.wait().expect("the end of the server");
        }
    }

    /// Starts it again on the same folder, with the same options, on a new port.
    pub(crate) fn start_again(&mut self) {
        assert!(self.process.is_none(), "the server still runs");
        let (process, addr) = launch(self.dir.path(), &self.options);
        (self.process, self.addr) = (Some(process), addr);
    }

    /// `kill -9`, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Processor time that its threads have used so far, in microseconds.
    pub(crate) fn cpu_us(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("its threads");
        // `ns-on-cpu ns-waiting slices`; a thread that has just ended has no figures any more.
        let of = |task: std::io::Result<std::fs::DirEntry>| {
            let figures =
                task.and_then(|task| std::fs::read_to_string(task.path().join("schedstat"))).ok()?;
            figures.split_whitespace().next()?.parse::<u64>().ok()
        };
        tasks.filter_map(of).sum::<u64>() / 1_000
    }

    /// The most memory that it has had so far.
    pub(crate) fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("its figures");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number")
    }

    /// Sends a signal, `TERM`, and does not wait.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.pid());
        let status = Command::new("sh").args(["-c", &kill]).status().expect("a shell");
        assert!(status.success(), "{kill}: {status}");
    }

    /// Stops it (SIGSTOP) and returns when none of its threads runs any more.
    pub(crate) fn stand_still(&self) {
        let pid = i32::try_from(self.pid()).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("to stop it");
        let stands = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = task.and_then(|task| std::fs::read_to_string(task.path().join("stat")));
            // `pid (name) state …`; a thread that has just ended does not run either.
            stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T")))
        };
        let tasks = || std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("its threads");
        while !tasks().all(stands) {
            std::thread::yield_now();
        }
    }

    /// Returns when the system has taken in, for the server, that this client has closed its side: everything the client sent
    /// is there and so is the end of it. Without this a server may read a request before it can know of the end.
    pub(crate) fn learns_of_the_end(&self, client: SocketAddr) {
        let ports = [client, self.addr].map(|addr| format!(":{:04X}", addr.port()));
        // `sl: local_address rem_address st …`; 05 is FIN_WAIT2, our end was acknowledged, and 06 TIME_WAIT, theirs came too.
        let ended = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            ports.iter().all(|port| words.next().is_some_and(|addr| addr.ends_with(port)))
                && words.next().is_some_and(|state| matches!(state, "05" | "06"))
        };
        while !std::fs::read_to_string("/proc/net/tcp").expect("the connections").lines().any(ended) {
            std::thread::yield_now();
        }
    }

    /// Waits for its end. Returns the status and what it wrote to stdout after it began to listen.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let mut process = self.process.take().expect("a running server");
        let mut rest = String::new();
        process.stdout.read_to_string(&mut rest).expect("the rest of its output");
        (process.child.wait().expect("its end"), rest)
    }

    /// SIGTERM, and waits for its end.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait().0
    }

    /// `GET`, on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.client().get(path)
    }

    /// `POST` of JSON, on a connection of its own.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.client().post(path, body)
    }

    /// `PUT` of JSON, on a connection of its own.
    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.client().send(&format!("PUT {path}"), &[JSON], body.to_string().as_bytes())
    }

    /// `DELETE`, on a connection of its own.
    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.client().send(&format!("DELETE {path}"), &[], b"")
    }
}

/// The header of a JSON body.
pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            drop(process.child.kill());
            drop(process.child.wait());
        }
        if std::thread::panicking() {
            eprintln!("---- log of the server ----\n{}", self.log());
        }
    }
}

fn log_file(dir: &Path) -> PathBuf {
    dir.join("server.log")
}

fn store_of(options: &Options) -> String {
    format!("sqlite:{}", options.store.as_deref().unwrap_or("tagwerk.db"))
}

/// Starts a server and waits until it says where it listens.
fn launch(dir: &Path, options: &Options) -> (Process, SocketAddr) {
    let log: File = OpenOptions::new().create(true).append(true).open(log_file(dir)).expect("a log file");
    let store = store_of(options);
    let mut command = options.command(dir, &["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    command.args(&options.args).envs(options.env.iter().map(|(name, value)| (name, value)));
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("the binary");
    let mut stdout = BufReader::new(child.stdout.take().expect("its stdout"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("its first line");
    let address = line.trim_end().strip_prefix("listening on http");
    let Some((_, addr)) = address.and_then(|address| address.split_once("://")) else {
        drop(child.kill());
        let status = child.wait().expect("its end");
        let log = std::fs::read_to_string(log_file(dir)).unwrap_or_default();
        panic!("the server did not begin to listen: {line:?}, {status}\n{log}");
    };
    (Process { child, stdout }, addr.parse().expect("an address"))
}
