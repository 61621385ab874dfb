//! The command line, run to its end.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::server::{Server, tagwerk};

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// What it printed, if it ended with this code.
    pub(crate) fn expect(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        &self.stdout
    }

    /// What it printed, as JSON, if it ended well.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.expect(0)).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What it said on stderr, if it ended with this code and printed nothing.
    pub(crate) fn fails(&self, code: i32) -> &str {
        assert_eq!(self.expect(code), "", "{self:?}");
        &self.stderr
    }
}

/// Runs `tagwerk ARGS` as a client of this server, in its folder.
pub(crate) fn run(server: &Server, args: &[&str]) -> Ran {
    let output = tagwerk(server.dir(), args).env("TAGWERK_URL", server.url()).output();
    Ran::of(output.expect("the binary"))
}

/// Runs `tagwerk ARGS` where there is no server.
pub(crate) fn run_alone(dir: &Path, args: &[&str]) -> Ran {
    Ran::of(tagwerk(dir, args).output().expect("the binary"))
}

/// Runs `tagwerk ARGS` with something on stdin.
pub(crate) fn run_with_input(server: &Server, args: &[&str], input: &[u8]) -> Ran {
    let mut command = tagwerk(server.dir(), args);
    command.env("TAGWERK_URL", server.url());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary");
    let mut stdin = child.stdin.take().expect("its stdin");
    // It may have ended without reading all of it.
    drop(stdin.write_all(input));
    drop(stdin);
    Ran::of(child.wait_with_output().expect("its end"))
}
