//! `tagwerk check`: proves from one snapshot that the ledger agrees with the rows and that no job is in a state without a
//! way out; that the orders of ordering keys are those of their jobs; and that what is said about queues and limits can be
//! meant. It opens the store itself and trusts nothing that a server keeps in memory.

mod orders;

use std::collections::BTreeMap;

use tagwerk_core::{Job, JobId, Status, Timestamp, limits};

use crate::row::{Counter, Lane, Tally};
use crate::store::{Listed, Read, StoreError, StoreResult};

/// Rows that one step of the scan reads.
const SCAN_STEP: usize = 1_000;
/// Findings of one kind beyond which only the number is told: enough to see a pattern.
const FINDINGS_MAX: usize = 100;

/// How deep to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Ledger against rows, and every job.
    Jobs,
    /// Also the store's own check of everything it holds.
    Integrity,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable name of the kind.
    pub code: &'static str,
    /// What was found where.
    pub detail: String,
}

/// What was looked at and found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Checked {
    /// Jobs read.
    pub jobs: u64,
    /// Ledger rows compared.
    pub lanes: u64,
    /// What must not be. Empty = clean.
    pub findings: Vec<Finding>,
    /// Findings that were not listed one by one.
    pub more: u64,
}

impl Checked {
    fn find(&mut self, code: &'static str, detail: String) {
        if self.findings.iter().filter(|finding| finding.code == code).count() < FINDINGS_MAX {
            self.findings.push(Finding { code, detail });
        } else {
            self.more += 1;
        }
    }
}

/// Checks one snapshot.
pub fn check(read: &mut dyn Read, depth: Depth) -> StoreResult<Checked> {
    let mut checked = Checked::default();
    let served_until = read.served_until()?;
    let mut counted: BTreeMap<i64, (Lane, Tally)> = BTreeMap::new();
    let mut after = JobId(0);
    loop {
        let rows = read.scan(after, SCAN_STEP)?;
        let Some(last) = rows.last() else { break };
        after = id_of(last);
        for row in &rows {
            checked.jobs += 1;
            match row {
                Listed::Damaged { id, why } => checked.find("damaged-row", format!("job {id}: {why}")),
                Listed::Job(full) => {
                    let lane = &full.row.lane;
                    let entry =
                        counted.entry(lane.class.0).or_insert_with(|| (lane.clone(), Tally::default()));
                    entry.1.add(Counter::of_status(full.row.job.status), 1);
                    entry.1.add(Counter::Blocked, i64::from(full.row.is_blocked()));
                    check_job(&full.row.job, served_until, &mut checked);
                    orders::check_job(read, &full.row, &mut checked)?;
                }
            }
        }
    }
    check_ledger(read, counted, &mut checked)?;
    orders::check_places(read, &mut checked)?;
    check_settings(read, &mut checked)?;
    if depth == Depth::Integrity {
        for line in read.integrity()? {
            checked.find("integrity", line);
        }
    }
    Ok(checked)
}

fn id_of(row: &Listed) -> JobId {
    match row {
        Listed::Job(full) => full.row.job.id,
        Listed::Damaged { id, .. } => *id,
    }
}

/// Every state has its way out: pending by a due time that comes, running by a lease that ends, failed by a person.
fn check_job(job: &Job, served_until: Option<Timestamp>, checked: &mut Checked) {
    if let Some(what) = contradiction(job) {
        checked.find("contradiction", format!("job {} ({}): {what}", job.id, job.status.name()));
    }
    if job.status == Status::Pending && job.available_at.since_ms(job.updated_at) > limits::DELAY_MAX_MS {
        checked.find("never-due", format!("job {} is due more than ten years after its last change", job.id));
    }
    let Some(served) = served_until else { return };
    // Whoever serves ends what is over within a second; a minute allows for a backlog of overdue rows.
    let long_ago = |at: Timestamp| served.since_ms(at) > limits::MINUTE_MS;
    if job.lease.as_ref().is_some_and(|lease| long_ago(lease.ends_at())) {
        checked
            .find("overdue-lease", format!("job {} should have been taken from its worker long ago", job.id));
    }
    if job.status == Status::Pending && job.expires_at.is_some_and(long_ago) {
        checked.find("overdue-expiry", format!("job {} should have expired long ago", job.id));
    }
}

/// What in a job contradicts itself.
fn contradiction(job: &Job) -> Option<&'static str> {
    let running = job.status == Status::Running;
    if running != job.lease.is_some() {
        return Some("a job has a lease exactly while it is running");
    }
    if (job.status == Status::Failed) != job.failure.is_some() {
        return Some("a job has a failure exactly while it is in review");
    }
    if job.status.is_settled() != job.finished_at.is_some() {
        return Some("a job has an end exactly when it has come to rest");
    }
    if job.started != (job.leases > 0) {
        return Some("a job is started exactly when it was ever handed out");
    }
    if job.attempt > job.leases || (running && job.attempt == 0) {
        return Some("its attempt number does not fit its leases");
    }
    if job.cancel_requested && !running {
        return Some("a cancel waits for an attempt that is not there");
    }
    if job.status == Status::Completed && job.open_effects().next().is_some() {
        return Some("nobody has said what became of an effect of a completed job");
    }
    if job.effects.iter().any(|effect| effect.seq == 0 || effect.seq > job.leases) {
        return Some("a lease that never was has begun an effect");
    }
    let mut names: Vec<&str> = job.effects.iter().map(|effect| &*effect.name).collect();
    names.sort_unstable();
    if names.len() > limits::EFFECTS_PER_JOB || names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Some("its effects are too many, or two have the same name");
    }
    if job.version < 1 || job.id.0 < 1 || job.id.0 > limits::JOB_ID_MAX {
        return Some("its id or version is out of range");
    }
    None
}

fn check_ledger(
    read: &mut dyn Read,
    mut counted: BTreeMap<i64, (Lane, Tally)>,
    checked: &mut Checked,
) -> StoreResult<()> {
    let ledger = match read.ledger() {
        Err(StoreError::DamagedRow(why)) => {
            checked.find("damaged-ledger", format!("the ledger cannot be compared: {why}"));
            return Ok(());
        }
        ledger => ledger?,
    };
    for (lane, ledger) in ledger {
        checked.lanes += 1;
        let name = format!("queue {}, type {}", lane.queue, lane.kind);
        if ledger.imbalance() != 0 {
            checked
                .find("ledger-imbalance", format!("{name}: {} jobs are unaccounted for", ledger.imbalance()));
        }
        let rows = counted.remove(&lane.id.0).map(|(_, tally)| tally).unwrap_or_default();
        compare(&name, (&ledger, &rows), checked);
    }
    for (lane, rows) in counted.into_values() {
        let name = format!("queue {}, type {}", lane.queue, lane.kind);
        compare(&name, (&Tally::default(), &rows), checked);
    }
    Ok(())
}

/// What operators have said about queues and limits.
fn check_settings(read: &mut dyn Read, checked: &mut Checked) -> StoreResult<()> {
    for line in read.loose_ends()? {
        checked.find("loose-end", line);
    }
    match read.queue_rows() {
        Ok(rows) => {
            for row in rows.iter().filter(|row| !row.settings.is_sound()) {
                let detail =
                    "a reserve needs max_running and leaves at least one slot of it; set the bounds anew";
                checked.find("unsound-queue", format!("queue {:?}: {detail}", row.name));
            }
        }
        Err(StoreError::DamagedRow(why)) => {
            let detail = format!("{why}; no server starts on it: put the row of table queue right");
            checked.find("damaged-queue", detail);
        }
        Err(error) => return Err(error),
    }
    match read.tokens() {
        Ok(_) => Ok(()),
        Err(StoreError::DamagedRow(why)) => {
            let detail = format!("{why}; no server starts on it: revoke the token");
            checked.find("damaged-token", detail);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn compare(name: &str, of: (&Tally, &Tally), checked: &mut Checked) {
    let (ledger, rows) = of;
    for counter in Status::ALL.map(Counter::of_status).into_iter().chain([Counter::Blocked]) {
        let (said, found) = (ledger.get(counter), rows.get(counter));
        if said != found {
            checked.find(
                "ledger-mismatch",
                format!("{name}: the ledger says {said} {}, there are {found}", counter.name()),
            );
        }
    }
}
