//! Rows of jobs that run, as they were last written. A report comes soon after its claim, and needs the row and the cold
//! part once more; from here they cost a copy instead of two look-ups and fifty decoded cells.
//!
//! Only the one writer writes to the file, so what it wrote is what stands there. Whatever could make that untrue empties
//! the cache: a rollback, a change by somebody with a shell, a statement that changes many rows at once.
//!
//! Two generations: what is put goes to the young one; when that is full it becomes the old one, and the old one is
//! forgotten. So the cost is constant and the size bounded, in rows and in bytes.

use tagwerk_core::{Effect, Status};
use tagwerk_engine::id_map::IdMap;
use tagwerk_engine::row::{Detail, JobRow};

/// Jobs of a generation: more than the jobs in flight between a few hundred workers.
const JOBS: usize = 8_192;
/// Bytes of a generation, in texts. Twice this is the most that the cache holds besides its fixed fields.
const BYTES: usize = 4 * 1024 * 1024;
/// A longer text is not worth a copy in memory.
const TEXT_BYTES: usize = 4_096;

/// See the module.
#[derive(Default)]
pub(crate) struct Recent {
    young: Generation,
    old: Generation,
}

#[derive(Default)]
struct Generation {
    rows: IdMap<i64, JobRow>,
    details: IdMap<i64, Detail>,
    bytes: usize,
}

impl Generation {
    fn is_full(&self) -> bool {
        self.rows.len() >= JOBS || self.details.len() >= JOBS || self.bytes >= BYTES
    }
}

impl Recent {
    /// A row, if it is known.
    pub(crate) fn row(&self, id: i64) -> Option<&JobRow> {
        self.young.rows.get(&id).or_else(|| self.old.rows.get(&id))
    }

    /// A cold part, if it is known.
    pub(crate) fn detail(&self, id: i64) -> Option<&Detail> {
        self.young.details.get(&id).or_else(|| self.old.details.get(&id))
    }

    /// A row was written: kept while the job runs.
    pub(crate) fn wrote(&mut self, row: &JobRow) {
        let id = row.job.id.0;
        if row.job.status != Status::Running {
            self.forget(id);
            return;
        }
        self.old.rows.remove(&id);
        let bytes = text_bytes(row);
        if bytes > TEXT_BYTES {
            self.young.rows.remove(&id);
            return;
        }
        self.make_room();
        self.young.bytes += bytes;
        self.young.rows.insert(id, row.clone());
    }

    /// A cold part was read: it never changes but for the payload, see [`Recent::forget`].
    pub(crate) fn read_detail(&mut self, id: i64, detail: &Detail) {
        if detail.payload.len() <= TEXT_BYTES {
            self.make_room();
            self.young.bytes += detail.payload.len();
            self.young.details.insert(id, detail.clone());
        }
    }

    /// A job has ended, was deleted, or has a new payload.
    pub(crate) fn forget(&mut self, id: i64) {
        for generation in [&mut self.young, &mut self.old] {
            generation.rows.remove(&id);
            generation.details.remove(&id);
        }
    }

    /// Nothing is known any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn make_room(&mut self) {
        if self.young.is_full() {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

/// Bytes of the texts of a row that have no small bound of their own.
fn text_bytes(row: &JobRow) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let progress = row.note.progress.as_ref().map_or(0, |progress| text(&progress.message));
    let effect = |effect: &Effect| {
        let result = effect.result.as_ref().map_or(0, |result| result.len());
        size_of::<Effect>() + effect.name.len() + effect.key.len() + result
    };
    let effects: usize = row.job.effects.iter().map(effect).sum();
    text(&row.job.error) + text(&row.note.result) + text(&row.note.checkpoint) + progress + effects
}
