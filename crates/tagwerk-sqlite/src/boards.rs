//! Where the due heads of special lanes stand: on the *board* of their class, or *behind* a limit that was full when it was
//! last looked at.
//!
//! A limit that is full is closed once, at the limit; its lanes hang behind it and cost nothing. When it opens, a few lanes
//! go back to their boards; a crowd stays where it is, and claims look at the front of it for as long as the limit is open.
//! Everything here is a hint that may be early, never late: a lane that stands on a board and may not run is put behind its
//! limit by the claim that meets it.
//!
//! Fair keys take turns: within a queue and priority the key goes first that was given something least recently.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tagwerk_engine::row::{Lane, LaneId};

use crate::book::{Candidate, Head, Level};
use crate::lanes::LimitId;

/// So many lanes go back to their boards when their limit opens; more stay behind it.
const FEW_LANES: usize = 8;

/// A due head of a special lane. Its turn comes before its place; without fair key the turn is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    rank: Reverse<i64>,
    turn: u64,
    head: Head,
    lane: LaneId,
}

impl Entry {
    const fn level(&self) -> Level {
        Level { lane: self.lane, prio: self.rank.0 }
    }
}

/// Due heads of a class in the order in which claims take them.
#[derive(Debug, Default)]
struct Board {
    /// Lanes with limits, without fair key.
    free: BTreeSet<Entry>,
    /// Lanes with a fair key.
    fair: BTreeSet<Entry>,
}

impl Board {
    fn of(&mut self, group: Option<GroupId>) -> &mut BTreeSet<Entry> {
        if group.is_some() { &mut self.fair } else { &mut self.free }
    }

    fn is_empty(&self) -> bool {
        self.free.is_empty() && self.fair.is_empty()
    }
}

/// Boards by class.
type Boards = HashMap<LaneId, Board>;

/// Number of a fair key in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GroupId(usize);

/// A key that takes turns.
#[derive(Debug, Default)]
struct Group {
    turn: u64,
    lanes: Vec<LaneId>,
}

/// A special lane.
#[derive(Debug)]
struct Place {
    class: LaneId,
    group: Option<GroupId>,
    /// The limit that it stands behind; `None` = it stands on the board.
    behind: Option<LimitId>,
    /// Its due heads by priority.
    due: BTreeMap<i64, Head>,
}

/// The keys of a queue.
#[derive(Debug, Default)]
struct Keys {
    by_name: HashMap<String, GroupId>,
    /// When jobs without a key were last given something.
    plain_turn: u64,
}

/// What lets nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// A limit of the lane.
    Limit(LimitId),
    /// The bound of the queue, for this priority and all below.
    Queue,
}

/// A turn that was given, and the one before it.
#[derive(Debug)]
enum Undo {
    Key(GroupId, u64),
    Plain(Arc<str>, u64),
}

/// What a claim takes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    /// The level and its head.
    pub(crate) from: Candidate,
    /// What comes next elsewhere: the level may be read up to there.
    pub(crate) runner_up: Option<Candidate>,
    /// One row only: keys take turns here.
    pub(crate) takes_turns: bool,
}

/// The plain heads of a claim: by class, the best that is due.
pub(crate) type PlainHeads<'a> = dyn Fn(LaneId) -> Option<Candidate> + 'a;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Special {
    places: HashMap<LaneId, Place>,
    on_board: Boards,
    behind: HashMap<LimitId, Boards>,
    /// How many lanes with due heads stand behind each limit.
    crowds: HashMap<LimitId, usize>,
    /// Limits that are open while lanes stand behind them.
    open: BTreeSet<LimitId>,
    groups: Vec<Group>,
    keys: HashMap<Arc<str>, Keys>,
    turns: u64,
    /// Turns that the open transaction has given, with those before.
    undo: Vec<Undo>,
    /// How many due heads stand on boards.
    on_boards: usize,
}

impl Special {
    /// A lane exists.
    pub(crate) fn know(&mut self, lane: &Lane) {
        if self.places.contains_key(&lane.id) {
            return;
        }
        let group = lane.fair_key().map(|key| {
            let keys = self.keys.entry(Arc::clone(&lane.queue)).or_default();
            let fresh = GroupId(self.groups.len());
            let group = *keys.by_name.entry(key.to_owned()).or_insert(fresh);
            if group == fresh {
                self.groups.push(Group::default());
            }
            if let Some(group) = self.groups.get_mut(group.0) {
                group.lanes.push(lane.id);
            }
            group
        });
        let place = Place { class: lane.class, group, behind: None, due: BTreeMap::new() };
        self.places.insert(lane.id, place);
    }

    /// A lane was made in a transaction that was rolled back. Its heads are gone already.
    pub(crate) fn forget(&mut self, lane: LaneId) {
        if let Some(Place { group: Some(group), .. }) = self.places.remove(&lane)
            && let Some(group) = self.groups.get_mut(group.0)
        {
            group.lanes.retain(|other| *other != lane);
        }
    }

    /// Whether claims of these classes (`None` = all) may be given something of a special lane.
    pub(crate) fn concerns(&self, classes: Option<&[LaneId]>) -> bool {
        let stands =
            |boards: &Boards, class: &LaneId| boards.get(class).is_some_and(|board| !board.is_empty());
        let behind_open = |class: &LaneId| {
            let open = self.open.iter().filter_map(|limit| self.behind.get(limit));
            open.into_iter().any(|boards| stands(boards, class))
        };
        match classes {
            None => self.on_boards > 0 || !self.open.is_empty(),
            Some(classes) => {
                (self.on_boards > 0 && classes.iter().any(|class| stands(&self.on_board, class)))
                    || (!self.open.is_empty() && classes.iter().any(behind_open))
            }
        }
    }

    /// Whether jobs take turns in any queue.
    pub(crate) fn knows_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether jobs of this queue take turns, those without a key as if they had one of their own.
    pub(crate) fn takes_turns(&self, queue: &str) -> bool {
        self.keys.contains_key(queue)
    }

    /// A head is due.
    pub(crate) fn insert(&mut self, level: Level, head: Head) {
        let Some(place) = self.places.get_mut(&level.lane) else { return };
        let is_first = place.due.is_empty();
        if place.due.insert(level.prio, head) == Some(head) {
            return;
        }
        let behind = place.behind;
        self.put(level, head);
        if let Some(limit) = behind.filter(|_| is_first) {
            *self.crowds.entry(limit).or_default() += 1;
        }
    }

    /// A head is due no more, or is another one.
    pub(crate) fn remove(&mut self, level: Level, head: Head) {
        let Some(place) = self.places.get_mut(&level.lane) else { return };
        if place.due.get(&level.prio) != Some(&head) {
            return;
        }
        place.due.remove(&level.prio);
        let left = place.behind.filter(|_| place.due.is_empty());
        self.take(level, head);
        if let Some(limit) = left {
            // Nothing of it is due: when something is, its limit may have room, and nobody will open it for this lane.
            if let Some(place) = self.places.get_mut(&level.lane) {
                place.behind = None;
            }
            self.leave_crowd(limit);
        }
    }

    fn leave_crowd(&mut self, limit: LimitId) {
        if let Some(crowd) = self.crowds.get_mut(&limit) {
            *crowd = crowd.saturating_sub(1);
            if *crowd == 0 {
                self.crowds.remove(&limit);
                self.open.remove(&limit);
            }
        }
    }

    fn entry(&self, level: Level, head: Head) -> Option<(Entry, &Place)> {
        let place = self.places.get(&level.lane)?;
        let turn = place.group.and_then(|group| self.groups.get(group.0)).map_or(0, |group| group.turn);
        Some((Entry { rank: Reverse(level.prio), turn, head, lane: level.lane }, place))
    }

    fn put(&mut self, level: Level, head: Head) {
        let Some((entry, place)) = self.entry(level, head) else { return };
        let (class, group, behind) = (place.class, place.group, place.behind);
        let boards = match behind {
            Some(limit) => self.behind.entry(limit).or_default(),
            None => &mut self.on_board,
        };
        let is_new = boards.entry(class).or_default().of(group).insert(entry);
        self.on_boards += usize::from(is_new && behind.is_none());
    }

    fn take(&mut self, level: Level, head: Head) {
        let Some((entry, place)) = self.entry(level, head) else { return };
        let (class, group, behind) = (place.class, place.group, place.behind);
        let boards = match behind {
            Some(limit) => self.behind.get_mut(&limit),
            None => Some(&mut self.on_board),
        };
        let Some(boards) = boards else { return };
        let Some(board) = boards.get_mut(&class) else { return };
        let was_there = board.of(group).remove(&entry);
        if board.is_empty() {
            boards.remove(&class);
        }
        let is_empty = boards.is_empty();
        match behind {
            Some(limit) if is_empty => drop(self.behind.remove(&limit)),
            Some(_) => {}
            None => self.on_boards -= usize::from(was_there),
        }
    }

    /// Moves a lane: behind this limit, or to its board.
    pub(crate) fn park(&mut self, lane: LaneId, behind: Option<LimitId>) {
        let Some(place) = self.places.get(&lane) else { return };
        let (before, due) = (place.behind, place.due.clone());
        if before == behind {
            return;
        }
        for (prio, head) in &due {
            self.take(Level { lane, prio: *prio }, *head);
        }
        if let Some(place) = self.places.get_mut(&lane) {
            place.behind = behind;
        }
        for (prio, head) in &due {
            self.put(Level { lane, prio: *prio }, *head);
        }
        if due.is_empty() {
            return;
        }
        if let Some(limit) = before {
            self.leave_crowd(limit);
        }
        if let Some(limit) = behind {
            *self.crowds.entry(limit).or_default() += 1;
        }
    }

    /// A limit may have room again.
    pub(crate) fn open(&mut self, limit: LimitId) {
        match self.crowds.get(&limit).copied().unwrap_or_default() {
            0 => {}
            crowd if crowd <= FEW_LANES => {
                for lane in self.lanes_behind(limit) {
                    self.park(lane, None);
                }
            }
            _ => drop(self.open.insert(limit)),
        }
    }

    /// Any limit may have room again.
    pub(crate) fn open_all(&mut self) {
        let limits: Vec<LimitId> = self.crowds.keys().copied().collect();
        for limit in limits {
            self.open(limit);
        }
    }

    /// A limit is full: what stands behind it is out of the way.
    pub(crate) fn close(&mut self, limit: LimitId) {
        self.open.remove(&limit);
    }

    fn lanes_behind(&self, limit: LimitId) -> BTreeSet<LaneId> {
        let boards = self.behind.get(&limit).into_iter().flat_map(HashMap::values);
        boards.flat_map(|board| board.free.iter().chain(&board.fair)).map(|entry| entry.lane).collect()
    }

    /// Limits that lanes of these classes (`None` = all) stand behind.
    pub(crate) fn waited_for(&self, classes: Option<&[LaneId]>) -> Vec<LimitId> {
        let concerns = |boards: &Boards| match classes {
            None => true,
            Some(classes) => classes.iter().any(|class| boards.contains_key(class)),
        };
        let limits = self.behind.iter().filter(|(_, boards)| concerns(boards));
        limits.map(|(limit, _)| *limit).collect()
    }

    /// A row of this lane was given: its key, or the jobs without a key, have had their turn.
    pub(crate) fn had_turn(&mut self, lane: &Lane) {
        let Some(keys) = self.keys.get_mut(&lane.queue) else { return };
        self.turns += 1;
        match self.places.get(&lane.id).and_then(|place| place.group) {
            None => {
                let before = std::mem::replace(&mut keys.plain_turn, self.turns);
                self.undo.push(Undo::Plain(Arc::clone(&lane.queue), before));
            }
            Some(group) => {
                let before = self.set_turn(group, self.turns);
                self.undo.push(Undo::Key(group, before));
            }
        }
    }

    /// Gives a key its turn, and moves its heads accordingly. Returns the turn that it had.
    fn set_turn(&mut self, group: GroupId, turn: u64) -> u64 {
        let lanes = self.groups.get(group.0).map(|group| group.lanes.clone()).unwrap_or_default();
        let due = |lane: &LaneId| {
            let due = self.places.get(lane).map(|place| place.due.clone()).unwrap_or_default();
            let lane = *lane;
            due.into_iter().map(move |(prio, head)| (Level { lane, prio }, head))
        };
        let heads: Vec<(Level, Head)> = lanes.iter().flat_map(due).collect();
        for (level, head) in &heads {
            self.take(*level, *head);
        }
        let before = self.groups.get_mut(group.0).map(|group| std::mem::replace(&mut group.turn, turn));
        for (level, head) in heads {
            self.put(level, head);
        }
        before.unwrap_or_default()
    }

    /// The transaction was committed: its turns hold.
    pub(crate) fn settle(&mut self) {
        self.undo.clear();
    }

    /// The transaction was rolled back: nobody has had a turn in it.
    pub(crate) fn revert(&mut self) {
        for undo in std::mem::take(&mut self.undo).into_iter().rev() {
            match undo {
                Undo::Key(group, before) => drop(self.set_turn(group, before)),
                Undo::Plain(queue, before) => {
                    if let Some(keys) = self.keys.get_mut(&queue) {
                        keys.plain_turn = before;
                    }
                }
            }
        }
    }

    /// The best head over these queues, each with its classes, and how many rows its limits let through. A head that may
    /// not run is put behind its limit, so that it does not stand for its queue.
    pub(crate) fn best(
        &mut self,
        queues: &[(Arc<str>, Vec<LaneId>)],
        plain: &PlainHeads<'_>,
        room: &mut dyn FnMut(Level) -> Result<u32, Closed>,
    ) -> Option<(Pick, u32)> {
        let mut best: Option<(Pick, u32)> = None;
        for (queue, classes) in queues {
            let of_queue = loop {
                let Some(pick) = self.best_of(queue, classes, plain) else { break None };
                match room(pick.from.level()) {
                    Ok(n) => break Some((pick, n)),
                    // What follows in the queue is no more urgent, so there is no room for it either.
                    Err(Closed::Queue) => break None,
                    Err(Closed::Limit(limit)) => {
                        self.park(pick.from.level().lane, Some(limit));
                        self.close(limit);
                    }
                }
            };
            let Some(found) = of_queue else { continue };
            best = Some(match best {
                None => found,
                Some(other) => {
                    let ((first, n), (second, _)) =
                        if found.0.from < other.0.from { (found, other) } else { (other, found) };
                    let runner_up = first.runner_up.into_iter().chain([second.from]).min();
                    (Pick { runner_up, ..first }, n)
                }
            });
        }
        best
    }

    /// The best head of a queue.
    fn best_of(&self, queue: &Arc<str>, classes: &[LaneId], plain: &PlainHeads<'_>) -> Option<Pick> {
        let mut free: Vec<Candidate> = Vec::new();
        let mut fair: Option<Entry> = None;
        let open: Vec<&Boards> = self.open.iter().filter_map(|limit| self.behind.get(limit)).collect();
        for class in classes {
            free.extend(plain(*class));
            let boards = std::iter::once(&self.on_board).chain(open.iter().copied());
            for board in boards.filter_map(|boards| boards.get(class)) {
                free.extend(board.free.iter().take(2).map(|entry| Candidate::new(entry.level(), entry.head)));
                fair = fair.into_iter().chain(board.fair.first().copied()).min();
            }
        }
        free.sort_unstable();
        let mut free = free.into_iter();
        let (first, second) = (free.next(), free.next());
        let of_fair = fair.map(|entry| (entry, Candidate::new(entry.level(), entry.head)));
        match (first, of_fair) {
            (None, None) => None,
            (Some(from), None) => Some(Pick { from, runner_up: second, takes_turns: false }),
            (None, Some((_, from))) => Some(Pick { from, runner_up: None, takes_turns: true }),
            (Some(from), Some((entry, candidate))) => {
                let plain_turn = self.keys.get(queue).map_or(0, |keys| keys.plain_turn);
                let prio = from.level().prio;
                let is_fair = match entry.rank.0.cmp(&prio) {
                    std::cmp::Ordering::Greater => true,
                    std::cmp::Ordering::Less => false,
                    std::cmp::Ordering::Equal => (entry.turn, candidate.head) < (plain_turn, from.head),
                };
                let takes_turns = is_fair || entry.rank.0 == prio;
                let (from, other) = if is_fair { (candidate, Some(from)) } else { (from, Some(candidate)) };
                // Where keys take turns the place says nothing, and one row is taken anyway.
                let runner_up = other.into_iter().chain(second).min().filter(|_| !takes_turns);
                Some(Pick { from, runner_up, takes_turns })
            }
        }
    }
}
