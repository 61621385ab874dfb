//! A running `tagwerk work`, and what it says.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::server::{Server, tagwerk};

/// Longer than anything a test waits for, so that a hanging test ends with a message.
const PATIENCE: Duration = Duration::from_secs(100);

/// A worker. It is killed when it is dropped.
pub(crate) struct Worker {
    child: Child,
    lines: Receiver<String>,
    /// Everything it has said so far.
    pub(crate) said: Vec<String>,
}

impl Worker {
    /// `tagwerk work ARGS -- COMMAND` for this server, in its folder.
    pub(crate) fn start(server: &Server, args: &[&str], command: &[&str]) -> Self {
        let mut worker = tagwerk(server.dir(), &[&["work"], args, &["--"], command].concat());
        Self::spawn(worker.env("TAGWERK_URL", server.url()))
    }

    /// The same, for a command that is a line of shell.
    pub(crate) fn shell(server: &Server, args: &[&str], script: &str) -> Self {
        Self::start(server, args, &["sh", "-c", script])
    }

    /// Any command line.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary");
        let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stderr.split(b'\n') {
                let line = String::from_utf8_lossy(&line.expect("its words")).into_owned();
                // A test that has ended listens no more.
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, said: Vec::new() }
    }

    /// Waits for a line that contains this text.
    pub(crate) fn line(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("no {text:?} ({error}) in {:#?}", self.said));
            self.said.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends a signal, `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success(), "{kill}");
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("to kill the worker");
        self.child.wait().expect("its end");
    }

    /// Waits for its end; the exit code. It has said everything then.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.said.push(line);
        }
        self.child.wait().expect("its end").code()
    }

    /// SIGTERM, and waits for its end; the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.wait()
    }

    /// Whether a line that it has said contains this text.
    pub(crate) fn has_said(&self, text: &str) -> bool {
        self.said.iter().any(|line| line.contains(text))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("---- the worker has said ----\n{}", self.said.join("\n"));
        }
    }
}
