//! What a seed decides before anything happens: settings of the server, who takes part, what goes wrong how often, how
//! long it lasts.

mod caps;
mod turns;

use tagwerk_core::{Jitter, RetryPolicy, retention};
use tagwerk_engine::settings::{LeaseToken, Settings};

use crate::chance::Chance;
use turns::Turns;

pub(crate) use caps::{Caps, LIMITS, bounds, settings as limit_settings};

/// Which store a world runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreKind {
    /// One server on the reference store in memory.
    Memory,
    /// Several servers on one store in memory.
    Nodes,
    /// One server on SQLite, in a file.
    Sqlite,
}

impl StoreKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Nodes, Self::Sqlite];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Nodes => "nodes",
            Self::Sqlite => "sqlite",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Who takes part, and how many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Producer,
    Honest,
    Slow,
    Dying,
    Lying,
    Tokenless,
    Bulk,
    Poller,
    Operator,
    Keeper,
}

impl Role {
    /// Who may take part anywhere, by chance.
    pub(crate) const ALL: [Self; 9] = [
        Self::Producer,
        Self::Honest,
        Self::Slow,
        Self::Dying,
        Self::Lying,
        Self::Tokenless,
        Self::Bulk,
        Self::Poller,
        Self::Operator,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Honest => "honest",
            Self::Slow => "slow",
            Self::Dying => "dying",
            Self::Lying => "lying",
            Self::Tokenless => "tokenless",
            Self::Bulk => "bulk",
            Self::Poller => "poller",
            Self::Operator => "operator",
            Self::Keeper => "keeper",
        }
    }
}

/// How often things go wrong: so many in 1000 of the occasions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) request_lost: u32,
    pub(crate) answer_lost: u32,
    pub(crate) connection_closed: u32,
    pub(crate) duplicated: u32,
    pub(crate) slow_way: u32,
    pub(crate) store_error: u32,
    pub(crate) commit_unknown: u32,
    pub(crate) crash: u32,
    pub(crate) stop: u32,
    pub(crate) stall: u32,
    pub(crate) clock_step: u32,
    pub(crate) housekeeping: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    pub(crate) nodes: usize,
    pub(crate) roles: Vec<Role>,
    pub(crate) rates: Rates,
    /// Calls after which the actors stop.
    pub(crate) calls: usize,
    /// Time after which they stop, in milliseconds.
    pub(crate) length_ms: i64,
    /// The longest time a batch takes, in milliseconds.
    pub(crate) commit_ms: i64,
    /// Names of queues and types that are in use.
    pub(crate) queues: usize,
    pub(crate) types: usize,
    /// Different idempotency keys in use.
    pub(crate) keys: usize,
    /// More jobs become overdue at once than one batch ends.
    pub(crate) mass: bool,
    pub(crate) turns: Turns,
    /// Limits and bounds of queues, if there are any.
    pub(crate) caps: Option<Caps>,
    /// So many of 100 completions lead to other jobs. In many worlds none does.
    pub(crate) leads: u32,
    /// So many of 100 signs of life of a worker are about a side effect. In many worlds there are none.
    pub(crate) effects: u32,
}

impl Plan {
    /// What this seed decides.
    pub(crate) fn of(seed: u64, store: StoreKind) -> Self {
        let mut chance = Chance::new(seed);
        let mass = chance.below(40) == 0;
        let nodes = if store == StoreKind::Nodes { 2 + chance.below(2) } else { 1 };
        let settings = settings(&mut chance);
        let mut rates = if chance.percent(15) { Rates::default() } else { rates(&mut chance) };
        if nodes > 1 {
            // One clock and one gap in serving are one server's; what several make of them is not settled yet.
            rates.stall = 0;
            rates.clock_step = 0;
        }
        let mut plan = Self {
            settings,
            nodes,
            roles: roles(&mut chance),
            rates,
            calls: if mass { 150 } else { 150 + chance.below(650) },
            length_ms: chance.between(60_000, 600_000),
            commit_ms: *chance.pick(&[0, 2, 20, 200]),
            queues: 1 + chance.below(3),
            types: 1 + chance.below(3),
            keys: 2 + chance.below(12),
            mass,
            turns: Turns::of(seed),
            caps: None,
            // From a stream of its own, so that worlds without follow-ups stay what they were.
            leads: *Chance::new(seed ^ 0xF011_0330).pick(&[0, 0, 0, 10, 35]),
            effects: *Chance::new(seed ^ 0x0EFF_EC75).pick(&[0, 0, 0, 30, 70]),
        };
        plan.limit(seed);
        plan
    }

    /// Limits for some worlds. The reference store looks at every row where there are any, so those worlds are smaller.
    fn limit(&mut self, seed: u64) {
        if self.mass {
            (self.leads, self.effects) = (0, 0);
            return;
        }
        self.caps = Caps::of(seed, self.queues, self.nodes);
        let Some(caps) = &self.caps else { return };
        self.settings.unknown_limits = caps.unknown_limits;
        self.calls = self.calls.min(450);
        // As with settings of types: what one server is told the others do not hear of.
        if self.nodes == 1 {
            self.roles.push(Role::Keeper);
        }
    }
}

fn settings(chance: &mut Chance) -> Settings {
    let keep = |chance: &mut Chance| match chance.below(4) {
        0 => None,
        1 => Some(0),
        _ => Some(chance.between(1_000, 120_000)),
    };
    let retention = retention::Policy { completed_ms: keep(chance), cancelled_ms: keep(chance) };
    Settings {
        max_retries: *chance.pick(&[0, 1, 2, 3]),
        max_lease_losses: *chance.pick(&[0, 1, 2, 4]),
        retry: policy(chance),
        lease_ms: *chance.pick(&[2_000, 5_000, 20_000]),
        ttl_ms: *chance.pick(&[0, 5_000, 60_000]),
        lease_token: if chance.percent(15) { LeaseToken::Required } else { LeaseToken::Optional },
        retention,
        ..Settings::default()
    }
}

fn policy(chance: &mut Chance) -> RetryPolicy {
    RetryPolicy {
        base_ms: *chance.pick(&[0, 200, 1_000, 3_000]),
        factor: *chance.pick(&[1.0, 1.5, 2.0, 3.0]),
        cap_ms: *chance.pick(&[500, 5_000, 30_000]),
        jitter: *chance.pick(&[Jitter::None, Jitter::Equal, Jitter::Full]),
    }
}

fn rates(chance: &mut Chance) -> Rates {
    let mut rate = |most: u32| {
        let drawn = if chance.percent(40) { 0 } else { chance.u64() & 0xFFFF_FFFF };
        u32::try_from(drawn % u64::from(most + 1)).unwrap_or(0)
    };
    Rates {
        request_lost: rate(60),
        answer_lost: rate(120),
        connection_closed: rate(60),
        duplicated: rate(80),
        slow_way: rate(150),
        store_error: rate(80),
        commit_unknown: rate(30),
        crash: rate(15),
        stop: rate(8),
        stall: rate(8),
        clock_step: rate(8),
        housekeeping: rate(20),
    }
}

fn roles(chance: &mut Chance) -> Vec<Role> {
    let mut roles = vec![Role::Producer, Role::Honest];
    for role in Role::ALL {
        for _ in 0..chance.below(3) {
            roles.push(role);
        }
    }
    roles
}
