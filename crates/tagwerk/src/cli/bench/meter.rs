//! Counts and times what is measured, and leaves out what comes before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tagwerk_engine::ports::Clock as _;

use super::cpu::Cpu;
use super::report::Latency;
use super::world::World;

/// So many errors without a success in between end a scenario: then it is not the server's speed that would be measured.
const ERRORS_IN_A_ROW_MAX: u64 = 1_000;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Jobs that come first and do not count.
    pub(super) warm_up: u64,
    /// Jobs that count.
    pub(super) jobs: u64,
}

impl Plan {
    /// All jobs that are needed.
    pub(super) const fn total(&self) -> u64 {
        self.warm_up + self.jobs
    }
}

/// What a scenario comes to.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) jobs: u64,
    /// As many as were planned.
    pub(super) complete: bool,
    pub(super) seconds: f64,
    pub(super) latency: Option<Latency>,
    pub(super) calls: u64,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) client_cpu: Option<Duration>,
    pub(super) server_cpu: Option<Duration>,
}

/// What ends the work before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// The time of a scenario, or Ctrl-C.
    WithTime,
    /// Ctrl-C.
    WhenStopped,
    /// Only errors: what is left behind is cleared away also after Ctrl-C.
    Never,
}

/// Shared by the workers of a scenario.
pub(super) struct Meter {
    world: Arc<World>,
    plan: Plan,
    ends: Ends,
    started: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Jobs that workers have taken on.
    taken: u64,
    warm: u64,
    /// When it began to count, and what had been used by then.
    from: Option<(Duration, Cpu)>,
    jobs: u64,
    until: Duration,
    /// Microseconds.
    samples: Vec<u32>,
    errors: BTreeMap<String, u64>,
    errors_in_a_row: u64,
}

impl Meter {
    /// For a scenario.
    pub(super) fn new(world: &Arc<World>, plan: Plan) -> Arc<Self> {
        Self::with(world, plan, Ends::WithTime)
    }

    /// For work that ends otherwise.
    pub(super) fn with(world: &Arc<World>, plan: Plan, ends: Ends) -> Arc<Self> {
        world.bar.set_length(plan.total());
        world.bar.set_position(0);
        let mut state = State::default();
        if plan.warm_up == 0 {
            state.from = Some((world.clock.monotonic(), Cpu::now(world.server_pid)));
        }
        let started = world.clock.monotonic();
        Arc::new(Self { world: Arc::clone(world), plan, ends, started, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is whole in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present moment.
    pub(super) fn now(&self) -> Duration {
        self.world.clock.monotonic()
    }

    /// Whether to go on: there is time, nobody has stopped it, and the server answers.
    pub(super) fn goes_on(&self) -> bool {
        let is_late = || self.now().saturating_sub(self.started) >= self.world.most;
        let ended = match self.ends {
            Ends::WithTime => self.world.is_stopped() || is_late(),
            Ends::WhenStopped => self.world.is_stopped(),
            Ends::Never => false,
        };
        !ended && self.state().errors_in_a_row < ERRORS_IN_A_ROW_MAX
    }

    /// Takes on up to this many jobs. Returns the number of the first, and how many.
    pub(super) fn take(&self, jobs: u64) -> Option<(u64, u64)> {
        if !self.goes_on() {
            return None;
        }
        let mut state = self.state();
        let first = state.taken;
        // A call that counts has no jobs in it that do not.
        let end = if first < self.plan.warm_up { self.plan.warm_up } else { self.plan.total() };
        let jobs = jobs.min(end.saturating_sub(first));
        state.taken += jobs;
        self.world.bar.inc(jobs);
        (jobs > 0).then_some((first, jobs))
    }

    /// A call that was sent then has settled so many jobs by now.
    pub(super) fn done(&self, sent: Duration, jobs: u64) {
        self.done_at((sent, self.now()), jobs);
    }

    /// The same, by that time.
    pub(super) fn done_at(&self, (sent, now): (Duration, Duration), jobs: u64) {
        let mut state = self.state();
        state.errors_in_a_row = 0;
        if state.from.is_none() {
            state.warm += jobs;
            if state.warm >= self.plan.warm_up {
                state.from = Some((self.now(), Cpu::now(self.world.server_pid)));
            }
            return;
        }
        state.jobs += jobs;
        state.until = now;
        let micros = now.saturating_sub(sent).as_micros();
        state.samples.push(u32::try_from(micros).unwrap_or(u32::MAX));
    }

    /// A call failed.
    pub(super) fn failed(&self, code: String) {
        let mut state = self.state();
        state.errors_in_a_row += 1;
        *state.errors.entry(code).or_default() += 1;
    }

    /// What it comes to.
    pub(super) fn finish(&self) -> Measured {
        let state = std::mem::take(&mut *self.state());
        let Some((from, cpu)) = state.from else {
            return Measured { errors: state.errors, ..Measured::default() };
        };
        let used = Cpu::now(self.world.server_pid).since(&cpu);
        Measured {
            jobs: state.jobs,
            complete: state.warm + state.jobs >= self.plan.total(),
            seconds: state.until.saturating_sub(from).as_secs_f64(),
            calls: state.samples.len() as u64,
            latency: Latency::of(state.samples),
            errors: state.errors,
            client_cpu: used.client,
            server_cpu: used.server,
        }
    }
}
