//! What happened, line by line, and a hash over all of it.

use tagwerk_core::JobId;

use crate::world::Echo;

/// Lines of one run. Whoever runs the same seed gets the same lines.
pub(crate) struct Trace {
    hasher: blake3::Hasher,
    lines: Vec<(Vec<JobId>, String)>,
    echo: Echo,
}

/// Lines of a job's story in a report.
const STORY_LINES: usize = 25;

impl Trace {
    pub(crate) fn new(echo: Echo) -> Self {
        Self { hasher: blake3::Hasher::new(), lines: Vec::new(), echo }
    }

    /// Adds a line about these jobs.
    pub(crate) fn line(&mut self, at_ms: i64, jobs: Vec<JobId>, text: &str) {
        let line = format!("{:>9.3} s  {text}", seconds(at_ms));
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        if self.echo == Echo::On {
            println!("{line}");
        }
        self.lines.push((jobs, line));
    }

    pub(crate) fn hash(&self) -> String {
        self.hasher.finalize().to_hex().chars().take(16).collect()
    }

    /// The last lines about a job; without one the last lines of all.
    pub(crate) fn story(&self, job: Option<i64>) -> Vec<String> {
        let about = |jobs: &[JobId]| job.is_none_or(|id| jobs.contains(&JobId(id)));
        let lines = self.lines.iter().rev().filter(|(jobs, _)| about(jobs));
        let mut story: Vec<String> = lines.take(STORY_LINES).map(|(_, line)| line.clone()).collect();
        story.reverse();
        story
    }
}

#[expect(clippy::cast_precision_loss, reason = "a simulation lasts minutes")]
fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}
