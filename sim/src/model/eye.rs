//! What the model looks up where the semantics leave a choice: ids, lease bits, the draw of a jitter, texts.
//!
//! It reads them from what the transaction wrote and from the answers, and only after it has worked out which values are
//! allowed.

use std::collections::BTreeMap;

use tagwerk_core::{Attempt, JobId};
use tagwerk_engine::command::{Enqueued, OperateAnswer, Refusal};
use tagwerk_engine::row::{FullJob, JobRow, KeyRow, KeyWrite};
use tagwerk_engine::store::{Insert, Listed};

use crate::call::{Answer, Reply};
use crate::witness::{Tried, Write};

/// See the module.
#[derive(Default)]
pub(crate) struct Eye<'a> {
    rows: BTreeMap<i64, Vec<&'a JobRow>>,
    /// Every row that was written, in order.
    pub(crate) written: Vec<&'a JobRow>,
    pub(crate) inserts: Vec<&'a Insert>,
    pub(crate) erased: Vec<i64>,
    /// The key table as the transaction leaves it, where it wrote.
    pub(crate) keys: BTreeMap<&'a str, Option<&'a KeyRow>>,
    pub(crate) attempts: BTreeMap<(i64, u32), &'a Attempt>,
}

impl<'a> Eye<'a> {
    pub(crate) fn new(tried: &'a Tried) -> Self {
        let mut eye = Self::default();
        for write in &tried.writes {
            match write {
                Write::Insert(insert) => {
                    eye.inserts.push(insert);
                    eye.wrote(&insert.row);
                }
                Write::Change(change) => eye.wrote(&change.after),
                Write::Erase(id) => eye.erased.push(id.0),
                Write::Key(KeyWrite::Insert(row) | KeyWrite::Replace { row, .. }) => {
                    eye.keys.insert(&row.key, Some(row));
                }
                Write::Key(KeyWrite::Delete { key, .. }) => {
                    eye.keys.insert(key, None);
                }
                Write::Attempt(id, attempt) => {
                    eye.attempts.insert((id.0, attempt.seq), attempt);
                }
                // What must be written about limits and queues is known from the calls.
                Write::Limit(..) | Write::Queue(_) => {}
            }
        }
        eye
    }

    fn wrote(&mut self, row: &'a JobRow) {
        self.written.push(row);
        self.rows.entry(row.job.id.0).or_default().push(row);
    }

    /// Takes in the rows that an answer shows.
    pub(crate) fn read(&mut self, reply: &'a Reply) {
        let Ok(answer) = reply else { return };
        match answer {
            Answer::Enqueue(items) => {
                for item in items {
                    match item {
                        Ok(Enqueued::Created(job) | Enqueued::Existing { job, .. }) => self.see(job),
                        Ok(Enqueued::Pruned { .. }) | Err(_) => {}
                    }
                }
            }
            Answer::Work(work) => {
                for result in &work.results {
                    match result {
                        Ok(answer) => self.see(&answer.job),
                        Err(Refusal::Rejected { job, .. }) => self.see(job),
                        Err(_) => {}
                    }
                }
            }
            Answer::Operate(Ok(OperateAnswer { job: Listed::Job(full), .. })) => self.see(full),
            Answer::Operate(Err(Refusal::Rejected { job, .. })) => self.see(job),
            Answer::Operate(_)
            | Answer::Claim(_)
            | Answer::PutType(_)
            | Answer::Limit(_)
            | Answer::Queue(_) => {}
        }
    }

    fn see(&mut self, job: &'a FullJob) {
        self.rows.entry(job.row.job.id.0).or_default().push(&job.row);
    }

    /// The job at exactly this version.
    pub(crate) fn at(&self, id: i64, version: i64) -> Option<&'a JobRow> {
        let rows = self.rows.get(&id)?;
        rows.iter().find(|row| row.job.version == version).copied()
    }

    /// The job at this version or the first one behind it that was shown: what a call did may have been overtaken by the
    /// next one before it was written.
    pub(crate) fn from(&self, id: i64, version: i64) -> Option<&'a JobRow> {
        let rows = self.rows.get(&id)?.iter().filter(|row| row.job.version >= version);
        rows.min_by_key(|row| row.job.version).copied()
    }

    /// The key of an effect of this job, as anything shows it.
    pub(crate) fn effect_key(&self, id: i64, name: &str) -> Option<&'a str> {
        let rows = self.rows.get(&id)?.iter().rev();
        rows.filter_map(|row| row.job.effect(name)).map(|effect| &*effect.key).next()
    }

    /// The job as the transaction leaves it.
    pub(crate) fn last(&self, id: i64) -> Option<&'a JobRow> {
        self.written.iter().rev().find(|row| row.job.id == JobId(id)).copied()
    }

    /// Whether the transaction changed where this job stands, from how it stood at this version.
    pub(crate) fn moved(&self, id: i64, version: i64) -> bool {
        self.last(id).is_some_and(|row| row.job.version > version)
    }
}
