//! What became of the lines so far, as people see it and as programs read it.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tagwerk_client::api::answer::StoredLine;
use tagwerk_client::api::problem::Problem;

use super::lines::Line;
use crate::cli::connect::Remote;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, note, problem_text};
use crate::cli::show;

/// Where nobody watches a bar, a line tells the progress this often.
const LINES_PER_NOTE: u64 = 10_000;

/// The bar moves this often.
const LINES_PER_MOVE: u64 = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) created: u64,
    pub(super) existing: u64,
    refused: u64,
    without_key: u64,
    differing: u64,
    /// The last line that is settled.
    pub(super) line: u64,
    /// The last line that a note told of.
    noted: u64,
    moved: u64,
    json: bool,
    bar: Option<ProgressBar>,
}

impl Tally {
    /// Of a file of this size, if it has one.
    pub(super) fn new(remote: &Remote, bytes: Option<u64>) -> Self {
        Self {
            created: 0,
            existing: 0,
            refused: 0,
            without_key: 0,
            differing: 0,
            line: 0,
            noted: 0,
            moved: 0,
            json: remote.json,
            bar: bar(bytes),
        }
    }

    /// The job of a line is there.
    pub(super) fn stored(&mut self, line: &Line, stored: &StoredLine) {
        self.differing += u64::from(stored.payload_differs);
        if stored.status == 201 {
            self.created += 1;
        } else {
            self.existing += 1;
        }
        self.settled(line);
    }

    /// A line is refused.
    pub(super) fn refuse(&mut self, number: u64, problem: &Problem) -> Result<(), Failure> {
        self.refused += 1;
        if self.json {
            let line = json!({"line": number, "status": problem.status, "problem": problem});
            return self.quietly(|| show::print(&line.to_string()).map(drop));
        }
        self.quietly(|| {
            note(&show::lines(&format!("line {number}: {}", problem_text(problem))));
            Ok(())
        })
    }

    /// Nothing more will come of a line.
    pub(super) fn settled(&mut self, line: &Line) {
        self.line = line.number;
        let Self { created, existing, refused, .. } = *self;
        let message = || format!("{created} created, {existing} existing, {refused} refused");
        match &self.bar {
            Some(bar) if line.number >= self.moved + LINES_PER_MOVE => {
                bar.set_position(line.end);
                bar.set_message(message());
                self.moved = line.number;
            }
            None if line.number >= self.noted + LINES_PER_NOTE => {
                note(&format!("{} lines: {}", line.number, message()));
                self.noted = line.number;
            }
            _ => {}
        }
    }

    pub(super) fn warn_of_missing_key(&mut self, line: &Line) {
        if line.has_key {
            return;
        }
        if self.without_key == 0 {
            let number = line.number;
            self.quietly(|| {
                note(&format!(
                    "warning: line {number} has no idempotency_key; if this bulk is interrupted and started again, lines \
                     without a key are enqueued twice"
                ));
            });
        }
        self.without_key += 1;
    }

    /// Without the bar in between.
    fn quietly<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    pub(super) fn end_bar(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Tells the sum.
    pub(super) fn finish(&self) -> Result<Exit, Failure> {
        self.end_bar();
        let Self { created, existing, refused, without_key, differing, .. } = *self;
        if self.json {
            let summary = json!({"done": true, "created": created, "existing": existing, "refused": refused});
            show::print(&summary.to_string())?;
        } else {
            show::print(&format!("created {created}, existing {existing}, refused {refused}"))?;
        }
        if differing > 0 {
            note(&format!(
                "warning: {differing} jobs existed and were made from other content, which counts"
            ));
        }
        if without_key > 1 {
            note(&format!("warning: {without_key} lines had no idempotency_key"));
        }
        Ok(if refused == 0 { Exit::Done } else { Exit::Refused })
    }
}

/// A bar for people who watch, or none.
fn bar(bytes: Option<u64>) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:40} {percent}%  {msg}  {elapsed}, {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner}  {msg}  {elapsed}"),
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    Some(bar.with_style(style))
}
