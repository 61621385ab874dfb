//! Running other programs. None of them ever gets our stdin: a chore must not wait for a person.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::system;

/// A call of cargo in the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    program(&system::cargo(), arguments)
}

/// A call of any program in the workspace's root.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(system::root()).stdin(Stdio::null());
    command
}

/// How the call would be typed, for headings and messages.
pub(crate) fn typed(command: &Command) -> String {
    let name = command.get_program().to_string_lossy();
    let short = name.rsplit('/').next().unwrap_or(&name).to_owned();
    command.get_args().fold(short, |line, argument| line + " " + &argument.to_string_lossy())
}

/// Whether the program exists and answers with success. Its output is thrown away.
pub(crate) fn answers(words: &[&str]) -> bool {
    let Some((name, arguments)) = words.split_first() else { return false };
    let mut call = if *name == "cargo" { cargo(arguments) } else { program(name, arguments) };
    let quiet = call.stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Runs the program with its output shown; true when it ended with success.
pub(crate) fn succeeds(command: &mut Command) -> anyhow::Result<bool> {
    let status = command.status().with_context(|| format!("cannot start `{}`", typed(command)))?;
    Ok(status.success())
}

/// What the program wrote to stdout; an error when it did not end with success.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let ended = command.output().with_context(|| format!("cannot start `{}`", typed(command)))?;
    let complaint = String::from_utf8_lossy(&ended.stderr);
    anyhow::ensure!(ended.status.success(), "`{}` failed: {}", typed(command), complaint.trim());
    String::from_utf8(ended.stdout).with_context(|| format!("`{}` wrote no UTF-8", typed(command)))
}

/// Runs the program with its output shown and kept: true when it ended with success, and every line it wrote.
pub(crate) fn watched(command: &mut Command) -> anyhow::Result<(bool, Vec<String>)> {
    if std::io::stderr().is_terminal() && system::variable("CARGO_TERM_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", typed(command)))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (mut lines, more) = std::thread::scope(|scope| {
        let errors = scope.spawn(|| err.map(|pipe| shown(pipe, std::io::stderr())).unwrap_or_default());
        let lines = out.map(|pipe| shown(pipe, std::io::stdout())).unwrap_or_default();
        (lines, errors.join().unwrap_or_default())
    });
    lines.extend(more);
    Ok((child.wait()?.success(), lines))
}

/// Copies a pipe to where people see it, and gives back its lines without colours.
fn shown(pipe: impl Read, mut to: impl Write) -> Vec<String> {
    let mut reader = BufReader::new(pipe);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        // Nobody may be reading any more; the program's result still counts.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        lines.push(without_colours(&String::from_utf8_lossy(&line)));
        line.clear();
    }
    lines
}

/// The text without terminal escapes (`ESC [ … letter`) and surrounding space.
fn without_colours(line: &str) -> String {
    let mut pieces = line.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    let plain = pieces.fold(first, |text, piece| {
        let end = piece.find(|letter: char| letter.is_ascii_alphabetic()).map_or(piece.len(), |at| at + 1);
        text + &piece[end..]
    });
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_off() {
        assert_eq!(without_colours("\u{1b}[32;1m     Summary\u{1b}[0m [ 0.1s]\n"), "Summary [ 0.1s]");
        assert_eq!(without_colours("plain\n"), "plain");
    }

    #[test]
    fn a_program_that_does_not_exist_does_not_answer() {
        assert!(!answers(&["a-program-that-does-not-exist", "--version"]));
        assert!(!answers(&[]));
    }

    #[test]
    fn watched_keeps_both_streams_and_the_result() -> anyhow::Result<()> {
        let (good, lines) = watched(&mut program("sh", &["-c", "echo out; echo err >&2; exit 3"]))?;
        assert!(!good);
        assert_eq!(lines, ["out", "err"]);
        Ok(())
    }

    #[test]
    fn typed_shows_the_program_without_its_folder() {
        assert_eq!(typed(&program("/some/where/cargo", &["fmt", "--all"])), "cargo fmt --all");
    }
}
