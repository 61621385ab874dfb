//! The throw-away server: a process of this program on an empty store in a temporary folder, on a free port of loopback.
//! No server of the user's is ever touched.

use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tagwerk_client::Client;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use crate::cli::failure::Failure;
use crate::cli::work::{Guard, this_program};

/// How long the server may take to listen.
const START: Duration = Duration::from_mins(1);

/// Lines of a log that are shown.
const TAIL_LINES: usize = 10;

/// How much of the end of a log is looked at.
const TAIL_BYTES: usize = 16 * 1024;

/// Server and folder. Dropped, both are gone.
pub(super) struct Lab {
    folder: PathBuf,
    server: Child,
    group: Option<Pid>,
    guard: Arc<Guard>,
    /// Kept, so that the server's output has somewhere to go.
    _stdout: BufReader<ChildStdout>,
    pub(super) addr: SocketAddr,
    pub(super) client: Client,
}

impl Lab {
    /// Makes both. `tag` tells this run from others.
    pub(super) async fn open(
        tag: &str,
        private: &[std::ffi::OsString],
        guard: Arc<Guard>,
    ) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("tagwerk-chaos-{tag}"));
        let failed = |error: std::io::Error| {
            Failure::machine(
                format!("cannot start a server in {}: {error}", folder.display()),
                "it needs a writable folder for temporary files (TMPDIR)",
            )
        };
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        let (server, group, stdout) = start(&folder, private, &guard).map_err(failed)?;
        let mut stdout = BufReader::new(stdout);
        let addr = tokio::time::timeout(START, address(&mut stdout)).await.ok().flatten();
        let url = addr.map(|addr| format!("http://{addr}"));
        let client = url.and_then(|url| Client::new(&url).ok());
        let mut opened = Half { folder, server: Some(server), group };
        let (Some(addr), Some(client)) = (addr, client) else {
            let said = tail(&opened.folder.join("server.log"));
            return Err(Failure::machine(format!("the server of the test did not start{said}"), ""));
        };
        let Some(server) = opened.server.take() else {
            return Err(Failure::machine("the server of the test has ended", ""));
        };
        let folder = std::mem::take(&mut opened.folder);
        Ok(Self { folder, server, group, guard, _stdout: stdout, addr, client })
    }

    /// A file in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Ends the server and removes the folder.
    pub(super) async fn close(mut self) {
        end(self.group);
        drop(self.server.wait().await);
        self.group.take().inspect(|group| self.guard.forget(*group));
        remove(&self.folder);
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.group.is_some() {
            end(self.group);
            remove(&self.folder);
        }
    }
}

/// A server that may not come up.
struct Half {
    folder: PathBuf,
    server: Option<Child>,
    group: Option<Pid>,
}

impl Drop for Half {
    fn drop(&mut self) {
        if self.server.is_some() {
            end(self.group);
            remove(&self.folder);
        }
    }
}

fn start(
    folder: &Path,
    private: &[std::ffi::OsString],
    guard: &Guard,
) -> std::io::Result<(Child, Option<Pid>, ChildStdout)> {
    let mut command = Command::new(this_program()?);
    for name in private {
        command.env_remove(name);
    }
    // In its own folder, where no configuration file lies.
    command.arg0("tagwerk").args(["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:tagwerk.db"]);
    command.current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(folder.join("server.log"))?);
    let mut server = command.spawn()?;
    let group = server.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    group.inspect(|group| guard.watch(*group));
    let stdout = server.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
    Ok((server, group, stdout))
}

/// Where it says that it listens.
async fn address(stdout: &mut BufReader<ChildStdout>) -> Option<SocketAddr> {
    let mut line = String::new();
    stdout.read_line(&mut line).await.ok()?;
    line.trim_end().strip_prefix("listening on http://")?.parse().ok()
}

fn end(group: Option<Pid>) {
    if let Some(group) = group {
        // Nothing in its store is worth an orderly end. It may have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn remove(folder: &Path) {
    // A folder that stays lies where temporary files are cleaned up.
    drop(std::fs::remove_dir_all(folder));
}

/// The last lines of a log, to be added to a message; nothing if there are none.
pub(super) fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    if last.is_empty() { String::new() } else { format!("; it said:\n  {}", last.join("\n  ")) }
}
