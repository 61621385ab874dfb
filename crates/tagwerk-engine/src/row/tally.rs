//! What is counted of jobs.

/// What is counted per lane, in the job's own transaction. The first seven obey
/// `enqueued = pending + running + completed + failed + cancelled + pruned`; the rest only rise, but for the last, which is
/// a part of the pending ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Jobs accepted.
    Enqueued,
    /// Jobs pending now.
    Pending,
    /// Jobs running now.
    Running,
    /// Jobs completed and not yet pruned.
    Completed,
    /// Jobs in review now.
    Failed,
    /// Jobs cancelled and not yet pruned.
    Cancelled,
    /// Jobs deleted by retention or DELETE.
    Pruned,
    /// Leases granted.
    Claims,
    /// Reports of completion that counted.
    Completions,
    /// Reports of a failure that counted.
    Failures,
    /// Requeues after a failure, a loss or a time-out.
    Retries,
    /// Leases that ran out, also those whose worker reported late.
    LeaseLosses,
    /// Attempts that reached their time limit, also those whose worker reported late.
    TimeOuts,
    /// Jobs given back.
    Releases,
    /// Entries into review.
    Reviews,
    /// Retries from review.
    ReviewRetries,
    /// Pending jobs that wait for their turn in the order of an ordering key. Part of those that are pending.
    Blocked,
}

impl Counter {
    /// Every counter, in storage order.
    pub const ALL: [Self; 17] = [
        Self::Enqueued,
        Self::Pending,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Pruned,
        Self::Claims,
        Self::Completions,
        Self::Failures,
        Self::Retries,
        Self::LeaseLosses,
        Self::TimeOuts,
        Self::Releases,
        Self::Reviews,
        Self::ReviewRetries,
        Self::Blocked,
    ];

    /// The counter that holds the number of jobs in this status.
    #[must_use]
    pub const fn of_status(status: tagwerk_core::Status) -> Self {
        match status {
            tagwerk_core::Status::Pending => Self::Pending,
            tagwerk_core::Status::Running => Self::Running,
            tagwerk_core::Status::Completed => Self::Completed,
            tagwerk_core::Status::Failed => Self::Failed,
            tagwerk_core::Status::Cancelled => Self::Cancelled,
        }
    }

    /// Column name in stores and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enqueued => "enqueued",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Pruned => "pruned",
            Self::Claims => "claims",
            Self::Completions => "completions",
            Self::Failures => "failures",
            Self::Retries => "retries",
            Self::LeaseLosses => "lease_losses",
            Self::TimeOuts => "time_outs",
            Self::Releases => "releases",
            Self::Reviews => "reviews",
            Self::ReviewRetries => "review_retries",
            Self::Blocked => "blocked",
        }
    }
}

/// One number per [`Counter`]: a ledger row, or what is to be added to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally([i64; Counter::ALL.len()]);

impl Tally {
    /// The number of one counter.
    #[must_use]
    pub const fn get(&self, counter: Counter) -> i64 {
        self.0[counter as usize]
    }

    /// Adds to one counter.
    pub const fn add(&mut self, counter: Counter, n: i64) {
        self.0[counter as usize] += n;
    }

    /// Adds all counters of another tally.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Whether every counter is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|n| *n == 0)
    }

    /// What the ledger says is wrong: jobs accepted less jobs accounted for. 0 when it balances.
    #[must_use]
    pub const fn imbalance(&self) -> i64 {
        self.get(Counter::Enqueued)
            - self.get(Counter::Pending)
            - self.get(Counter::Running)
            - self.get(Counter::Completed)
            - self.get(Counter::Failed)
            - self.get(Counter::Cancelled)
            - self.get(Counter::Pruned)
    }
}
