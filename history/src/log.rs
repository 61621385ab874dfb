//! Histories as files: a line of JSON for each call, before them one for what is known of the run.

use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::rules::Rules;

/// Calls, and what is known of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// What is known of the run.
    pub rules: Rules,
    /// The calls, in any order.
    pub calls: Vec<Call>,
}

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Rules { rules: Rules },
    Call(Box<Call>),
}

/// A file that is no history.
#[derive(Debug)]
pub enum LogError {
    /// It could not be read or written.
    Io(std::io::Error),
    /// A line is neither a call nor the rules. The number counts from 1.
    Line(usize, serde_json::Error),
}

impl std::fmt::Display for LogError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the file: {error}"),
            Self::Line(number, error) => write!(f, "line {number} is neither a call nor the rules: {error}"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Line(_, error) => Some(error),
        }
    }
}

impl From<std::io::Error> for LogError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl History {
    /// Reads a history. Empty lines are passed over.
    pub fn read(from: impl BufRead) -> Result<Self, LogError> {
        let mut history = Self::default();
        for (number, line) in (1..).zip(from.lines()) {
            let line = line?;
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(&line).map_err(|error| LogError::Line(number, error))? {
                Line::Rules { rules } => history.rules = rules,
                Line::Call(call) => history.calls.push(*call),
            }
        }
        Ok(history)
    }

    /// Writes it so that [`History::read`] reads the same.
    pub fn write(&self, mut to: impl Write) -> Result<(), LogError> {
        let rules = Line::Rules { rules: self.rules.clone() };
        writeln!(to, "{}", serde_json::to_string(&rules).map_err(|error| LogError::Line(1, error))?)?;
        for (number, call) in (2..).zip(&self.calls) {
            let line = serde_json::to_string(call).map_err(|error| LogError::Line(number, error))?;
            writeln!(to, "{line}")?;
        }
        Ok(to.flush()?)
    }
}
