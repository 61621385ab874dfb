//! Answers are durable. Promise 1: success is answered only behind a commit, and what was committed is there, also after
//! a restart, exactly as it was written.

use super::{At, Broken, Event, Invariant};

/// See the module.
pub(super) struct Durable;

impl Invariant for Durable {
    fn name(&self) -> &'static str {
        "answers are durable"
    }

    fn see(&mut self, _at: At, event: &Event<'_>) -> Result<(), Broken> {
        match event {
            Event::Answered { call, reply: Ok(reply), committed: false } => {
                // A wait that ends promises nothing.
                let empty = matches!(reply, crate::call::Answer::Claim(answer) if answer.jobs.is_empty());
                if !empty {
                    let what = format!("a {} was answered as done, and nothing was committed", call.kind());
                    return Err((call.jobs().first().copied(), what));
                }
            }
            Event::Scanned { jobs, rows } => {
                for full in *jobs {
                    match rows.get(&full.row.job.id) {
                        Some(row) if *row == full.row => {}
                        Some(_) => {
                            return Err((
                                Some(full.row.job.id),
                                "its row is not what was last committed".to_owned(),
                            ));
                        }
                        None => {
                            return Err((
                                Some(full.row.job.id),
                                "it is there and was never committed".to_owned(),
                            ));
                        }
                    }
                }
                if jobs.len() != rows.len() {
                    return Err((
                        None,
                        format!("{} jobs were committed, {} are there", rows.len(), jobs.len()),
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
