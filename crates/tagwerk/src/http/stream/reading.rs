//! Reads the body of a stream and hands on its lines.

use axum::body::Body;
use http_body_util::BodyExt as _;
use tagwerk_api::problem::{Code, Problem};
use tagwerk_core::limits;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::super::reading::patience;
use super::lines::{Batch, Lines};
use super::told::Failure;

/// How the reading ended.
pub(super) enum End {
    /// With the body.
    Whole,
    /// Nobody takes batches any more; whoever took them knows why.
    NotTaken,
    /// Before this line had come whole.
    Early(u64, Why),
}

/// Why it ended early.
#[derive(Clone, Copy)]
pub(super) enum Why {
    /// The connection broke, or the body is not what its head says.
    Broken,
    /// Nothing came for too long.
    Silence,
    /// The server is shutting down.
    Stopping,
}

impl End {
    /// What to tell.
    pub(super) fn failure(&self) -> Option<Failure> {
        let Self::Early(line, why) = *self else { return None };
        let problem = match why {
            Why::Broken => Problem::new(
                Code::InvalidJson,
                format!("the stream broke off before the end of line {line}; send it again from there"),
            ),
            Why::Silence => {
                let seconds = limits::BODY_PAUSE_MS / limits::SECOND_MS;
                Problem::new(
                    Code::RequestTimeout,
                    format!(
                        "nothing came for {seconds} seconds; the lines before {line} are in, send the rest again"
                    ),
                )
            }
            Why::Stopping => Problem::new(
                Code::Draining,
                format!(
                    "the server is shutting down; the lines before {line} are in, send the rest in a moment"
                ),
            ),
        };
        Some(Failure { line, problem })
    }
}

/// Reads to the end of the body. A batch goes out when it is full, or when nothing more is there and somebody waits for it.
pub(super) async fn read(
    body: &mut Body,
    to: (Lines, mpsc::Sender<Batch>),
    mut stopping: watch::Receiver<bool>,
) -> End {
    let (mut lines, batches) = to;
    let why = loop {
        let frame = tokio::select! {
            biased;
            () = batches.closed() => return End::NotTaken,
            _ = stopping.wait_for(|stopping| *stopping) => break Some(Why::Stopping),
            frame = timeout(patience(limits::BODY_PAUSE_MS), body.frame()) => frame,
            permit = batches.reserve(), if lines.has_lines() => {
                if let Ok(permit) = permit {
                    permit.send(lines.take());
                }
                continue;
            }
        };
        let frame = match frame {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "a stream broke off");
                break Some(Why::Broken);
            }
            Ok(None) => break None,
            Err(_) => break Some(Why::Silence),
        };
        let Ok(data) = frame.into_data() else { continue };
        let mut rest = &*data;
        while !rest.is_empty() {
            let used = lines.push(rest);
            rest = rest.get(used..).unwrap_or_default();
            if lines.is_full() && batches.send(lines.take()).await.is_err() {
                return End::NotTaken;
            }
        }
    };
    if why.is_none() {
        lines.end();
    }
    let next = lines.next_line();
    if lines.has_lines() && batches.send(lines.take()).await.is_err() {
        return End::NotTaken;
    }
    why.map_or(End::Whole, |why| End::Early(next, why))
}
