//! Finding claimable rows: a merge over the heads of the matched lanes, in runs.
//!
//! The best head says in which level the next job stands; the runner-up says how far that level may be read. Each run is
//! one seek and reads one row more than it takes: that row is the level's new head. Cost: about one seek per run, whatever
//! the number of jobs that wait, and nothing for lanes that are not reached.

mod gated;

use std::collections::{BTreeSet, HashSet};
use std::iter::Peekable;

use rusqlite::{Connection, params};
use tagwerk_core::{JobId, Timestamp};
use tagwerk_engine::id_map::IdMap;
use tagwerk_engine::row::{JobRow, LaneId};
use tagwerk_engine::store::{ClaimQuery, Filter};

use crate::book::{Book, Candidate, Head, Level, seek, seek_after};
use crate::codec::job::{DUE, Decoder, Depth, ID, job_columns};
use crate::error::{Fail, Res};
use crate::lanes::Lanes;
use crate::writer::Writer;

/// Rows of a level.
macro_rules! run {
    ($from:literal) => {
        concat!(
            "SELECT ",
            job_columns!(),
            " FROM job INDEXED BY job_ready WHERE lane = ?1 AND prio = ?2 AND state = 0 AND ",
            $from,
            " LIMIT ?5"
        )
    };
}
/// A run: rows of a level from a place on. SQLite seeks to the due time only and steps from there to the id, so this is
/// for when nothing but the place itself can stand there.
pub(crate) const RUN: &str = run!("(due, id) >= (?3, ?4) ORDER BY due, id");
/// The first part of a run when rows before the place have been given and not yet changed.
pub(crate) const RUN_SAME: &str = run!("due = ?3 AND id >= ?4 ORDER BY id");
/// Its second part.
pub(crate) const RUN_LATER: &str = run!("due > ?3 ORDER BY due, id");

/// Answers each wish.
pub(super) fn claimable(writer: &mut Writer, now: i64, queries: &[ClaimQuery<'_>]) -> Res<Vec<Vec<JobRow>>> {
    writer.offer_given_again();
    writer.book.wake(now);
    for limit in writer.gates.wake(Timestamp::from_millis(now)) {
        writer.book.special.open(limit);
    }
    let mut answers = Vec::with_capacity(queries.len());
    let mut rest = queries;
    while let Some(first) = rest.first() {
        let (group, behind) = rest.split_at(alike(first, rest));
        rest = behind;
        if group.len() == 1 {
            answers.push(answer(writer, now, first)?);
            continue;
        }
        let together = ClaimQuery { wanted: group.len(), max_bytes: u64::MAX, ..*first };
        let mut rows = answer(writer, now, &together)?.into_iter();
        answers.extend(group.iter().map(|_| rows.next().into_iter().collect::<Vec<_>>()));
    }
    Ok(answers)
}

/// How many wishes from the first on can be answered by one walk, a row to each in turn: those of workers that ask for one
/// job and for the same. One row is given whatever its size.
fn alike(first: &ClaimQuery<'_>, queries: &[ClaimQuery<'_>]) -> usize {
    let is_plain = |query: &ClaimQuery<'_>| query.wanted == 1 && query.skip.is_empty();
    let same = |query: &&ClaimQuery<'_>| is_plain(query) && query.filter == first.filter;
    queries.iter().take_while(same).count().max(1)
}

/// Answers one wish, and moves the heads past what was given.
fn answer(writer: &mut Writer, now: i64, query: &ClaimQuery<'_>) -> Res<Vec<JobRow>> {
    let matched = writer.paused.leave_out(&writer.lanes, classes_of(&writer.lanes, query.filter));
    let is_bound = writer.bounds.concerns(&writer.lanes, matched.as_deref());
    if is_bound || writer.book.special.concerns(matched.as_deref()) {
        return gated::answer(writer, now, (query, matched));
    }
    let mut merge = Merge::new(Sources::of(writer), now, query);
    match &matched {
        Some(lanes) => merge.run(writer.book.due_of(lanes, now).into_iter().peekable())?,
        None => merge.run(writer.book.due().peekable())?,
    }
    let Merge { taken, heads, damaged, runs, .. } = merge;
    writer.runs += runs;
    for (level, head) in heads {
        writer.book.set(level, head);
    }
    writer.book.wake(now);
    for (id, why) in damaged {
        writer.note_damaged(id, &why);
    }
    if writer.book.special.knows_keys() {
        for row in &taken {
            writer.book.special.had_turn(&row.lane);
        }
    }
    writer.given.extend(taken.iter().map(place));
    Ok(taken)
}

/// Where a row that is given stands.
fn place(row: &JobRow) -> (i64, (Level, Head)) {
    let level = Level { lane: row.lane.id, prio: row.priority.value().into() };
    (row.job.id.0, (level, Head { due: row.job.available_at.as_millis(), id: row.job.id.0 }))
}

/// The classes that a filter names, which are the plain lanes; `None` = all.
fn classes_of(lanes: &Lanes, filter: &Filter) -> Option<Vec<LaneId>> {
    let mut matched: Vec<LaneId> = match (&filter.queues, &filter.types) {
        (None, None) => lanes.of_space(filter.space.as_ref()?).collect(),
        (Some(queues), Some(kinds)) => {
            let pairs = queues.iter().flat_map(|queue| kinds.iter().map(move |kind| (queue, kind)));
            pairs.flat_map(|(queue, kind)| lanes.of_both(queue, kind)).collect()
        }
        (Some(queues), None) => queues.iter().flat_map(|queue| lanes.of_queue(queue)).collect(),
        (None, Some(kinds)) => kinds.iter().flat_map(|kind| lanes.of_kind(kind)).collect(),
    };
    if let Some(space) = &filter.space {
        let is_here = |id: &LaneId| lanes.get(*id).is_some_and(|lane| lane.space.as_deref() == Some(space));
        matched.retain(is_here);
    }
    // A name may be given twice.
    matched.sort_unstable();
    matched.dedup();
    Some(matched)
}

/// Where a merge reads.
#[derive(Clone, Copy)]
struct Sources<'a> {
    conn: &'a Connection,
    lanes: &'a Lanes,
    given: &'a IdMap<i64, (Level, Head)>,
    known_damaged: &'a HashSet<i64>,
}

impl<'a> Sources<'a> {
    const fn of(writer: &'a Writer) -> Self {
        let Writer { conn, lanes, given, damaged, .. } = writer;
        Self { conn, lanes, given, known_damaged: damaged }
    }
}

/// The merge for one wish.
struct Merge<'a> {
    decoder: Decoder<'a>,
    given: &'a IdMap<i64, (Level, Head)>,
    known_damaged: &'a HashSet<i64>,
    skip: HashSet<JobId>,
    now: i64,
    wanted: usize,
    bytes_left: u64,
    /// Levels that were read and have more.
    opened: BTreeSet<Candidate>,
    /// First row of a level that was left out on request: its head stays there.
    kept: Vec<(Level, Head)>,
    taken: Vec<JobRow>,
    /// New heads of the levels that were read.
    heads: Vec<(Level, Option<Head>)>,
    damaged: Vec<(i64, String)>,
    runs: u64,
}

/// How reading a level ended.
enum End {
    /// There are no more rows in it.
    Exhausted,
    /// It goes on here, but another level comes first.
    Behind(Head),
    /// It goes on here, but the row is not due.
    Later(Head),
    /// It goes on here, and the wish is fulfilled.
    Fulfilled(Head),
}

impl<'a> Merge<'a> {
    fn new(sources: Sources<'a>, now: i64, query: &ClaimQuery<'_>) -> Self {
        let Sources { conn, lanes, given, known_damaged } = sources;
        Self {
            decoder: Decoder { conn, lanes, depth: Depth::Full },
            given,
            known_damaged,
            skip: query.skip.iter().copied().collect(),
            now,
            wanted: query.wanted,
            bytes_left: query.max_bytes,
            opened: BTreeSet::new(),
            kept: Vec::new(),
            taken: Vec::new(),
            heads: Vec::new(),
            damaged: Vec::new(),
            runs: 0,
        }
    }

    /// Takes rows from the best level until the wish is fulfilled or nothing is due any more.
    fn run(&mut self, mut source: Peekable<impl Iterator<Item = Candidate>>) -> Res<()> {
        while self.taken.len() < self.wanted {
            let Some(best) = self.next_best(&mut source) else { break };
            let runner_up = self.opened.first().copied().into_iter().chain(source.peek().copied()).min();
            let level = best.level();
            match self.read(best, runner_up)? {
                End::Behind(head) => {
                    self.opened.insert(Candidate::new(level, head));
                }
                End::Exhausted => self.heads.push((level, None)),
                End::Later(head) => self.heads.push((level, Some(head))),
                End::Fulfilled(head) => {
                    self.heads.push((level, Some(head)));
                    break;
                }
            }
        }
        self.close();
        Ok(())
    }

    /// The best head: of the levels that were read, or of the others.
    fn next_best(&mut self, source: &mut Peekable<impl Iterator<Item = Candidate>>) -> Option<Candidate> {
        match (self.opened.first(), source.peek()) {
            (Some(opened), Some(fresh)) if opened < fresh => self.opened.pop_first(),
            (Some(_), None) => self.opened.pop_first(),
            _ => source.next(),
        }
    }

    /// Levels that are still open keep the place where they were left; rows left out on request come before it.
    fn close(&mut self) {
        let open = std::mem::take(&mut self.opened);
        self.heads.extend(open.into_iter().map(|candidate| (candidate.level(), Some(candidate.head))));
        for (level, head) in &mut self.heads {
            if let Some((_, kept)) = self.kept.iter().find(|(kept, _)| kept == level) {
                *head = Some(*kept);
            }
        }
    }

    /// Reads a run.
    fn read(&mut self, from: Candidate, runner_up: Option<Candidate>) -> Res<End> {
        if self.given.is_empty() {
            return self.walk(RUN, from, runner_up);
        }
        match self.walk(RUN_SAME, from, runner_up)? {
            End::Exhausted => self.walk(RUN_LATER, from, runner_up),
            end => Ok(end),
        }
    }

    /// Reads what one statement gives of a run.
    fn walk(&mut self, sql: &str, from: Candidate, runner_up: Option<Candidate>) -> Res<End> {
        self.runs += 1;
        let level = from.level();
        let limit = (self.wanted - self.taken.len()).saturating_add(1);
        let mut select = self.decoder.conn.prepare_cached(sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = select.query(params![level.lane.0, level.prio, from.head.due, from.head.id, limit])?;
        let (mut last, mut seen) = (from.head, 0);
        while let Some(row) = rows.next()? {
            seen += 1;
            last = Head { due: row.get(DUE)?, id: row.get(ID)? };
            if last.due > self.now {
                return Ok(End::Later(last));
            }
            if runner_up.is_some_and(|runner_up| runner_up < Candidate::new(level, last)) {
                return Ok(End::Behind(last));
            }
            if self.taken.len() == self.wanted {
                return Ok(End::Fulfilled(last));
            }
            if !self.take(level, last, row)? {
                return Ok(End::Fulfilled(last));
            }
        }
        Ok(if seen == limit { End::Behind(last.next()) } else { End::Exhausted })
    }

    /// Takes a row, or passes it over. Says no if it is too big for what is left of the wish.
    fn take(&mut self, level: Level, place: Head, row: &rusqlite::Row<'_>) -> Res<bool> {
        if self.skip.contains(&JobId(place.id)) {
            if self.kept.iter().all(|(kept, _)| *kept != level) {
                self.kept.push((level, place));
            }
            return Ok(true);
        }
        if self.given.contains_key(&place.id) || self.known_damaged.contains(&place.id) {
            return Ok(true);
        }
        let row = match self.decoder.decode(row) {
            Ok(row) => row,
            Err(Fail::Row(why)) => {
                self.damaged.push((place.id, why));
                return Ok(true);
            }
            Err(fail) => return Err(fail),
        };
        let bytes = row.answer_bytes();
        if bytes > self.bytes_left && !self.taken.is_empty() {
            return Ok(false);
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.taken.push(row);
        Ok(true)
    }
}

/// How many heads are looked at for one of certain classes.
const TIMERS_SCAN: usize = 1_000;

/// When time alone may make something claimable for a filter. Heads may be early, so the best is looked up.
pub(super) fn next_due(writer: &mut Writer, now: i64, filter: &Filter) -> Res<Option<i64>> {
    let Writer { conn, lanes, book, gates, bounds, paused, .. } = writer;
    book.wake(now);
    let classes = paused.leave_out(lanes, classes_of(lanes, filter));
    let mut earliest: Option<i64> = None;
    // What is due says nothing about what is due later in the same level. Special lanes with something due wait behind a
    // limit, which their later rows do as well.
    for (level, _) in due_levels(book, classes.as_deref(), now) {
        let later = seek_after(conn, level, now)?.map(|head| head.due);
        earliest = earliest.into_iter().chain(later).min();
    }
    let waited_for = book.special.waited_for(classes.as_deref());
    if !waited_for.is_empty() {
        let at = Timestamp::from_millis(now);
        let opens = gates.opens_at(conn, (lanes, &waited_for), at)?.map(Timestamp::as_millis);
        earliest = earliest.into_iter().chain(opens).min();
    }
    let end = bounds.first_end(conn, lanes, classes.as_deref())?.map(Timestamp::as_millis);
    earliest = earliest.into_iter().chain(end).min();
    while let Some((level, head)) = first_later((book, lanes), classes.as_deref(), now) {
        if earliest.is_some_and(|earliest| earliest <= head.due) {
            break;
        }
        let found = seek(conn, level)?;
        if found == Some(head) {
            return Ok(Some(head.due));
        }
        book.set(level, found);
    }
    Ok(earliest)
}

/// Due levels of plain lanes.
fn due_levels(book: &Book, classes: Option<&[LaneId]>, now: i64) -> Vec<(Level, Head)> {
    let mut levels = book.levels(classes);
    levels.retain(|(level, head)| head.due <= now && !level.lane.is_special());
    levels
}

/// The first head of these classes behind `now`; after a bounded look one of others, which is early.
fn first_later(of: (&Book, &Lanes), classes: Option<&[LaneId]>, now: i64) -> Option<(Level, Head)> {
    let (book, lanes) = of;
    let Some(classes) = classes else { return book.timers(now).next() };
    let plain = book.levels(Some(classes)).into_iter().filter(|(_, head)| head.due > now);
    let plain = plain.min_by_key(|(_, head)| *head);
    let is_ours =
        |lane: LaneId| lanes.get(lane).is_some_and(|lane| classes.binary_search(&lane.class).is_ok());
    let special = book.special_timers(now).take(TIMERS_SCAN).enumerate();
    let mut special = special.filter(|(at, (level, _))| is_ours(level.lane) || at + 1 == TIMERS_SCAN);
    let special = special.next().map(|(_, found)| found);
    plain.into_iter().chain(special).min_by_key(|(_, head)| *head)
}
