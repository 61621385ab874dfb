//! Keeps a number of calls in flight for a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::conversation::{Tally, mark_begin, mark_end, percentile};
use crate::system;

/// What a call brought.
pub(super) struct Moved {
    /// Jobs that it moved to where they should be.
    pub(super) jobs: u64,
    /// Whether it makes sense to call again.
    pub(super) more: bool,
}

/// Jobs that are left to do, shared by all who call.
#[derive(Clone)]
pub(super) struct Left(Arc<AtomicU64>);

impl Left {
    /// So many, or without end if that is zero.
    pub(super) fn of(jobs: u64) -> Self {
        Self(Arc::new(AtomicU64::new(if jobs == 0 { u64::MAX } else { jobs })))
    }

    /// Takes up to so many.
    pub(super) fn take(&self, most: u64) -> u64 {
        let taken = |left: u64| Some(left - left.min(most));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).map_or(0, |left| left.min(most))
    }
}

/// One of those who call, with a connection of its own.
pub(super) trait Caller: Send + 'static {
    /// Makes a call.
    fn call(&mut self) -> impl Future<Output = anyhow::Result<Moved>> + Send;

    /// Ends what the last call has begun, after the time.
    fn finish(&mut self) -> impl Future<Output = anyhow::Result<u64>> + Send {
        async { Ok(0) }
    }
}

/// A connection of a caller.
pub(super) trait Connect: Sized {
    /// A new one.
    fn open(address: &str) -> impl Future<Output = anyhow::Result<Self>> + Send;
}

/// The server that is loaded, and what its callers run on.
pub(super) struct Server {
    address: String,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    /// The one at that address.
    pub(super) fn at(address: &str) -> anyhow::Result<Self> {
        Ok(Self { address: address.to_owned(), runtime: super::runtime()? })
    }

    /// Waits for what is done with its address.
    pub(super) fn wait<T>(&self, act: impl AsyncFnOnce(&str) -> anyhow::Result<T>) -> anyhow::Result<T> {
        self.runtime.block_on(act(&self.address))
    }

    /// Lets so many callers, each with a connection of its own, call for that long.
    pub(super) fn load<N: Connect, C: Caller>(
        &self,
        (count, time): (usize, Duration),
        make: impl Fn(N) -> C,
    ) -> anyhow::Result<Tally> {
        self.wait(async |address| {
            let mut callers = Vec::with_capacity(count);
            for _ in 0..count {
                callers.push(make(N::open(address).await?));
            }
            pump(callers, time).await
        })
    }
}

/// What one caller did.
#[derive(Default)]
struct Share {
    jobs: u64,
    last: Option<Instant>,
    calls: Vec<f64>,
}

/// Lets all callers call until the time is over or nothing is left. Calls that are under way then are waited for, and
/// count with the time they take.
async fn pump<C: Caller>(callers: Vec<C>, time: Duration) -> anyhow::Result<Tally> {
    let mut set = JoinSet::new();
    mark_begin();
    let began = system::now();
    let deadline = began + time;
    for caller in callers {
        set.spawn(call_until(caller, deadline));
    }
    let mut all = Share::default();
    while let Some(share) = set.join_next().await {
        let share = share??;
        all.jobs += share.jobs;
        all.last = all.last.max(share.last);
        all.calls.extend(share.calls);
    }
    mark_end();
    all.calls.sort_unstable_by(f64::total_cmp);
    Ok(Tally {
        jobs: all.jobs,
        seconds: all.last.unwrap_or(began).saturating_duration_since(began).as_secs_f64(),
        p50_ms: percentile(&all.calls, 50),
        p99_ms: percentile(&all.calls, 99),
        total: all.jobs,
        ..Tally::default()
    })
}

async fn call_until<C: Caller>(mut caller: C, deadline: Instant) -> anyhow::Result<Share> {
    let mut share = Share::default();
    let mut more = true;
    while more {
        let from = system::now();
        if from >= deadline {
            break;
        }
        let moved = caller.call().await?;
        more = moved.more;
        if moved.jobs > 0 {
            let to = system::now();
            share.jobs += moved.jobs;
            share.last = Some(to);
            share.calls.push(to.duration_since(from).as_secs_f64() * 1e3);
        }
    }
    let rest = caller.finish().await?;
    if rest > 0 {
        share.jobs += rest;
        share.last = Some(system::now());
    }
    Ok(share)
}
