//! How many pages of the file a claim reads.
//!
//! The store is opened anew without memory for pages, so every page that no cursor stands on is read from the file each time
//! that somebody looks at it, and the system counts what this thread reads. That is an upper bound: with its usual memory
//! the store reads next to nothing. Pages that a transaction has written stay in memory until it ends, so each claim has a
//! transaction of its own. What its end writes is not counted.

use tagwerk_engine::row::Counter;
use tagwerk_engine::store::{ClaimQuery, Filter, Tx};

use crate::line::{BATCH, Line, count};
use crate::meter::{bytes_read, to_f64};
use crate::steps::{take, undo, write};

const PAGE_BYTES: u64 = 4_096;
const CLAIMS_OF_ONE: usize = 400;
const CLAIMS_OF_MANY: usize = 40;

/// Pages a job, on average.
pub(crate) struct Read {
    /// To find a job, and change nothing.
    pub(crate) look_for_one: f64,
    /// To find a job and let it run.
    pub(crate) claim_of_one: f64,
    /// The same a hundred at a time.
    pub(crate) claim_of_many: f64,
}

/// Measures a line to its end.
pub(crate) fn read(line: Line) -> Read {
    let closed = line.close();
    let mut store = closed.open_without_cache();
    let now = closed.now;
    // Whatever is full is met once after the start.
    write(&mut store, |tx| drop(take(tx, now, 1)));
    let look = |tx: &mut dyn Tx| {
        let filter = Filter::default();
        let one = ClaimQuery { filter: &filter, wanted: 1, max_bytes: u64::MAX, skip: &[] };
        counted(|| assert_eq!(tx.claimable(now, &[one]).expect("rows")[0].len(), 1))
    };
    let claim = |tx: &mut dyn Tx, n: usize| {
        counted(|| {
            let rows = take(tx, now, n);
            assert_eq!(rows.len(), n);
            count(tx, &rows, &[Counter::Running, Counter::Claims]);
        })
    };
    let look_for_one = (0..CLAIMS_OF_ONE).map(|_| undo(&mut store, look)).sum();
    let claim_of_one = (0..CLAIMS_OF_ONE).map(|_| write(&mut store, |tx| claim(tx, 1))).sum();
    let claim_of_many = (0..CLAIMS_OF_MANY).map(|_| write(&mut store, |tx| claim(tx, BATCH))).sum();
    Read {
        look_for_one: mean(look_for_one, CLAIMS_OF_ONE),
        claim_of_one: mean(claim_of_one, CLAIMS_OF_ONE),
        claim_of_many: mean(claim_of_many, CLAIMS_OF_MANY * BATCH),
    }
}

/// Whole pages that are read meanwhile. The look at the counter itself reads less than a page.
fn counted(work: impl FnOnce()) -> u64 {
    let from = bytes_read();
    work();
    (bytes_read() - from) / PAGE_BYTES
}

fn mean(pages: u64, calls: usize) -> f64 {
    to_f64(usize::try_from(pages).expect("small")) / to_f64(calls)
}
