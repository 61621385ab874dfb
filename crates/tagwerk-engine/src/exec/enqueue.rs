//! Accepting jobs. A key is judged against the job that has it; a UNIQUE constraint in the store backs the judgement.

mod held;
mod space;

use std::borrow::Cow;
use std::collections::HashMap;

use tagwerk_core::access::Reach;
use tagwerk_core::idempotency::{self, OnDuplicate, OnMismatch, Standing};
use tagwerk_core::{Job, JobId, NewJob, Status, Timestamp, limits};

use super::limits::unknown;
use super::queues::{self, Admitted};
use crate::command::{BulkMode, Enqueue, EnqueueJob, Enqueued, MaxAge, Refusal, Start};
use crate::exec::admit::{self, Admission};
use crate::exec::defaults::{self, queue_of};
use crate::exec::supersede;
use crate::row::{Detail, JobRow, KeyRow, KeyWrite, Lane, Note, Ordering, TypeSettings, in_space};
use crate::settings::UnknownLimits;
use crate::store::{SpecialName, StoreError, StoreResult};
use crate::tokens::Fields;
use crate::work::{View, Work};
use space::space_of;

type Item = Result<Enqueued, Refusal>;

/// What is to become of one job of the request.
pub(super) enum Verdict {
    /// It is new; with a key, the key is written like this.
    Create,
    /// The key's job stands for it.
    Existing { key: KeyRow, relation: Relation },
    /// The key is held by a job created earlier in the same request.
    Repeats { index: usize, relation: Relation },
    /// No.
    Refused(Refusal),
}

impl Verdict {
    /// Whether what was sent is to be stored: as a new job, or in the place of what a job had.
    const fn stores(&self) -> bool {
        match self {
            Self::Create => true,
            Self::Existing { relation, .. } | Self::Repeats { relation, .. } => {
                matches!(relation.replace, Some(true))
            }
            Self::Refused(_) => false,
        }
    }
}

/// How what was sent stands to the job that has its key.
#[derive(Clone, Copy)]
pub(super) struct Relation {
    /// It is not what was first sent with the key.
    differs: bool,
    /// `on_duplicate: replace` was asked for: whether it could be the same work. What is for another type or another queue
    /// is not, and is never written into the job; nor is there anything to write into once the job is pruned.
    replace: Option<bool>,
}

impl Relation {
    /// `sent`: the job, and whether it says something else. `home`: type and queue of the job that has the key, if it is still there.
    fn of(work: &Work<'_>, sent: (&EnqueueJob, bool), home: Option<(&str, &str)>) -> Self {
        let (job, differs) = sent;
        if job.on_duplicate != Some(OnDuplicate::Replace) {
            return Self { differs, replace: None };
        }
        let none = TypeSettings::default();
        let own = (&*job.kind, queue_of(job, work.env.types.get(&job.kind).unwrap_or(&none)));
        Self { differs: differs || home.is_some_and(|home| home != own), replace: Some(home == Some(own)) }
    }
}

/// Where jobs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A producer.
    Producer,
    /// This job, which is judged as completed already. What it leads to is inside work: no bound of a queue refuses it, and
    /// a known key is no error.
    Completed(JobId),
}

/// Executes an enqueue.
pub(crate) fn enqueue(work: &mut Work<'_>, request: &Enqueue) -> StoreResult<Vec<Item>> {
    let verdicts = verdicts(work, (request, Source::Producer))?;
    let refused = verdicts.iter().position(|verdict| matches!(verdict, Verdict::Refused(_)));
    if let (BulkMode::Atomic, Some(index)) = (request.mode, refused) {
        return Ok(verdicts
            .into_iter()
            .map(|verdict| match verdict {
                Verdict::Refused(refusal) => Err(refusal),
                _ => Err(Refusal::NotAtomic { index }),
            })
            .collect());
    }
    execute(work, (request, Source::Producer), verdicts)
}

/// Judges what is to become of each job. Nothing is changed.
pub(super) fn verdicts(work: &mut Work<'_>, asked: (&Enqueue, Source)) -> StoreResult<Vec<Verdict>> {
    let (request, source) = asked;
    let space = space_of(work, asked);
    let keys = request.jobs.iter().filter_map(|job| job.key.as_deref());
    let keys: Vec<Cow<'_, str>> = keys.map(|key| in_space(space.as_deref(), key)).collect();
    work.load_keys(&keys.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    let mut created_here: HashMap<&str, usize> = HashMap::new();
    let mut admitted = Admitted::default();
    let mut verdicts = Vec::with_capacity(request.jobs.len());
    let mut admission = Admission::default();
    for (index, job) in request.jobs.iter().enumerate() {
        let mut verdict = judge(work, asked, (job, &created_here, space.as_deref()))?;
        if verdict.stores()
            && let Some(refusal) = admission.refusal(work.env, job)
        {
            verdict = Verdict::Refused(refusal);
        }
        if matches!(verdict, Verdict::Create)
            && let Some(refusal) = turned_away(work, (job, source), &mut admitted)?
        {
            verdict = Verdict::Refused(refusal);
        }
        if let (Verdict::Create, Some(key)) = (&verdict, &job.key) {
            created_here.insert(key, index);
        }
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

fn judge(
    work: &mut Work<'_>,
    asked: (&Enqueue, Source),
    item: (&EnqueueJob, &HashMap<&str, usize>, Option<&str>),
) -> StoreResult<Verdict> {
    let ((request, source), (job, created_here, space)) = (asked, item);
    let is_strict = source == Source::Producer;
    if let Some(reach) = &request.reach
        && let Some(refusal) = admit::out_of_reach(work.env, job, reach)
    {
        return Ok(Verdict::Refused(refusal));
    }
    if let Some(refusal) = impossible(job, work.env.now) {
        return Ok(Verdict::Refused(refusal));
    }
    let Some(key) = &job.key else { return Ok(Verdict::Create) };
    if let Some(&index) = created_here.get(key.as_str()) {
        let differs = request.jobs.get(index).is_none_or(|first| fingerprint(first) != fingerprint(job));
        return Ok(match (job.on_mismatch, job.on_duplicate) {
            _ if !is_strict => {
                Verdict::Repeats { index, relation: beside(work, request, (index, (job, differs))) }
            }
            (Some(OnMismatch::Reject), _) if differs => Verdict::Refused(Refusal::KeyReusedHere { index }),
            (_, Some(OnDuplicate::Conflict)) => Verdict::Refused(Refusal::DuplicateHere { index }),
            _ => Verdict::Repeats { index, relation: beside(work, request, (index, (job, differs))) },
        });
    }
    let Some(row) = work.key(&in_space(space, key))? else { return Ok(Verdict::Create) };
    if row.tombstone.is_none() && work.is_damaged(row.owner)? {
        return Ok(Verdict::Refused(Refusal::JobDamaged(row.owner)));
    }
    let Some(standing) = standing_then(work, &row, source)? else { return Ok(Verdict::Create) };
    if !idempotency::holds(row.scope, row.ttl_ms, &standing, work.env.now) {
        return Ok(Verdict::Create);
    }
    let differs = fingerprint(job) != row.fingerprint;
    if request.reach.as_ref().is_some_and(|reach| hidden(work, (&row, differs), reach)) {
        return Ok(Verdict::Refused(Refusal::KeyTaken));
    }
    let reject = is_strict && differs && job.on_mismatch == Some(OnMismatch::Reject);
    let conflict = is_strict && job.on_duplicate == Some(OnDuplicate::Conflict);
    if !reject && !conflict {
        let owner = row.tombstone.is_none().then(|| work.row(row.owner)).flatten();
        let home = owner.map(|owner| (&*owner.lane.kind, &*owner.lane.queue));
        let relation = Relation::of(work, (job, differs), home);
        return Ok(Verdict::Existing { key: row, relation });
    }
    if row.tombstone.is_none() && work.damage(row.owner)?.is_some() {
        return Ok(Verdict::Refused(Refusal::JobDamaged(row.owner)));
    }
    Ok(Verdict::Refused(match (row.tombstone, reject) {
        (Some(tombstone), true) => Refusal::KeyReusedPruned(row.owner, tombstone),
        (Some(tombstone), false) => Refusal::DuplicatePruned(row.owner, tombstone),
        (None, true) => Refusal::KeyReused(row.owner),
        (None, false) => Refusal::Duplicate(work.full(row.owner, View::of(request.jobs.len()))?),
    }))
}

/// Whether the job that has a key is not for the caller to see. Of a pruned one the queue is not known any more; what was first
/// sent with the key is what is sent now, unless it differs.
fn hidden(work: &Work<'_>, (key, differs): (&KeyRow, bool), reach: &Reach) -> bool {
    match &key.tombstone {
        Some(tombstone) => !reach.types.fits(&tombstone.kind) || (differs && !reach.queues.is_all()),
        None => work.row(key.owner).is_none_or(|JobRow { lane, .. }| {
            !reach.covers((&lane.queue, &lane.kind), lane.space.as_deref())
        }),
    }
}

/// How a job stands to an earlier one of the same request, which is not there yet.
fn beside(work: &Work<'_>, request: &Enqueue, (first, sent): (usize, (&EnqueueJob, bool))) -> Relation {
    let none = TypeSettings::default();
    let home = request
        .jobs
        .get(first)
        .map(|first| (&*first.kind, queue_of(first, work.env.types.get(&first.kind).unwrap_or(&none))));
    Relation::of(work, sent, home)
}

/// Where the job that has the key stands; `None` if neither job nor tombstone is left.
pub(crate) fn standing(work: &mut Work<'_>, key: &KeyRow) -> StoreResult<Option<Standing>> {
    if let Some(tombstone) = &key.tombstone {
        return Ok(Some(tombstone.standing));
    }
    work.load(&[key.owner])?;
    Ok(work.row(key.owner).map(|row| Standing {
        status: row.job.status,
        started: row.job.started,
        finished_at: row.job.finished_at,
    }))
}

/// The same at the moment in which the new jobs come to be: whatever led to them is completed then.
fn standing_then(work: &mut Work<'_>, key: &KeyRow, source: Source) -> StoreResult<Option<Standing>> {
    let standing = standing(work, key)?;
    let is_done = key.tombstone.is_none() && source == Source::Completed(key.owner);
    let done = |standing| Standing { status: Status::Completed, finished_at: Some(work.env.now), ..standing };
    Ok(if is_done { standing.map(done) } else { standing })
}

/// Times that only the server's clock can judge.
fn impossible(job: &EnqueueJob, now: Timestamp) -> Option<Refusal> {
    let too_far = |at: Timestamp| at.since_ms(now) > limits::DELAY_MAX_MS;
    let invalid = |field, message: &str| Some(Refusal::Invalid { field, message: message.to_owned() });
    if matches!(job.start, Start::At(at) if too_far(at)) {
        return invalid("run_at", "lies more than ten years ahead");
    }
    if job.supersede && job.subject.as_ref().is_none_or(|subject| subject.version.is_none()) {
        return invalid("subject.version", "is needed with supersede: it says which job is newer");
    }
    match job.max_age {
        Some(MaxAge::At(at)) if too_far(at) => invalid("expires_at", "lies more than ten years ahead"),
        Some(MaxAge::At(at)) if at <= now => {
            invalid("expires_at", "has already passed, so the job could never run; name a later time")
        }
        _ => None,
    }
}

pub(super) fn execute(
    work: &mut Work<'_>,
    asked: (&Enqueue, Source),
    verdicts: Vec<Verdict>,
) -> StoreResult<Vec<Item>> {
    let (request, space) = (asked.0, space_of(work, asked));
    let new: Vec<&EnqueueJob> = request
        .jobs
        .iter()
        .zip(&verdicts)
        .filter(|(_, verdict)| matches!(verdict, Verdict::Create))
        .map(|(job, _)| job)
        .collect();
    let view = View::of(request.jobs.len());
    let mut created = create(work, &new, space.as_deref())?.into_iter();
    let mut ids: Vec<Option<JobId>> = Vec::with_capacity(verdicts.len());
    let mut items = Vec::with_capacity(verdicts.len());
    for (job, verdict) in request.jobs.iter().zip(verdicts) {
        let (id, item) = match verdict {
            Verdict::Create => {
                let id =
                    created.next().ok_or_else(|| StoreError::Other("fewer jobs than verdicts".into()))?;
                (Some(id), Ok(Enqueued::Created(work.full(id, view)?)))
            }
            Verdict::Refused(refusal) => (None, Err(named(work, refusal, (&ids, view))?)),
            Verdict::Existing { key, relation } => {
                let owner = key.owner;
                match held::existing(work, (job, view), (key, relation)) {
                    // Its cold part. Nothing has been recorded for this item; a group fails as a whole.
                    Err(StoreError::DamagedRow(_)) if request.mode == BulkMode::Each => {
                        (None, Err(Refusal::JobDamaged(owner)))
                    }
                    item => (None, Ok(item?)),
                }
            }
            Verdict::Repeats { index, relation } => match ids.get(index).copied().flatten() {
                Some(first) => (None, Ok(held::repeated(work, (job, view), (first, relation))?)),
                None => return Err(StoreError::Other("a repeated key lost its first job".into())),
            },
        };
        ids.push(id);
        items.push(item);
    }
    Ok(items)
}

/// Names the earlier job of the same request by its id. It has one by now, and says more than a place in a list.
fn named(work: &mut Work<'_>, refusal: Refusal, at: (&[Option<JobId>], View)) -> StoreResult<Refusal> {
    let (ids, view) = at;
    let id_at = |index: usize| ids.get(index).copied().flatten();
    Ok(match refusal {
        Refusal::DuplicateHere { index } => match id_at(index) {
            Some(first) => Refusal::Duplicate(work.full(first, view)?),
            None => refusal,
        },
        Refusal::KeyReusedHere { index } => id_at(index).map_or(refusal, Refusal::KeyReused),
        other => other,
    })
}

/// Creates jobs with consecutive ids.
fn create(work: &mut Work<'_>, jobs: &[&EnqueueJob], space: Option<&str>) -> StoreResult<Vec<JobId>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let types = work.env.types;
    let none = TypeSettings::default();
    let settings: Vec<&TypeSettings> = jobs.iter().map(|job| types.get(&job.kind).unwrap_or(&none)).collect();
    let names: Vec<(&str, &str)> =
        jobs.iter().zip(&settings).map(|(job, set)| (queue_of(job, set), &*job.kind)).collect();
    let lanes = lanes_of(work, (jobs, &settings), (&names, space))?;
    work.note_lanes(&lanes);
    let first = work.tx.next_ids(jobs.len())?;
    let mut orderings: Vec<Option<Box<Ordering>>> =
        jobs.iter().zip(&settings).map(|(job, set)| defaults::ordering_of(job, set)).collect();
    space::keep_apart(&mut orderings, space);
    work.load_orders(orderings.iter().filter_map(Option::as_deref))?;
    let mut ids = Vec::with_capacity(jobs.len());
    let given = jobs.iter().zip(settings).zip(lanes).zip(orderings);
    for (offset, (((job, set), lane), ordering)) in (0..).zip(given) {
        let id = JobId(first.0 + offset);
        let fingerprint = job.key.as_ref().map(|_| fingerprint(job));
        let key = job.key.as_deref().map(|key| in_space(space, key));
        if let Some((key, fingerprint)) = key.as_deref().zip(fingerprint) {
            take_key(work, key_row(work, (job, set), (key, id, fingerprint)))?;
        }
        let mut row = new_row(work, (job, set), (id, lane));
        if let Some(ordering) = &ordering {
            row.order = Some(Box::new(work.line_up(ordering)));
        }
        let detail = Detail { key: key.map(Cow::into_owned), ..detail_of(job, fingerprint, ordering) };
        work.create(row, detail);
        ids.push(id);
    }
    supersede::judge(work, jobs.iter().copied().zip(ids.iter().copied()))?;
    Ok(ids)
}

/// The lanes of jobs. Those without limits and fair key cost what they did before there were any.
fn lanes_of(
    work: &mut Work<'_>,
    (jobs, settings): (&[&EnqueueJob], &[&TypeSettings]),
    (names, space): (&[(&str, &str)], Option<&str>),
) -> StoreResult<Vec<Lane>> {
    let mut lanes = work.tx.intern_in(space, names)?;
    if jobs.iter().zip(settings).all(|(job, set)| defaults::is_plain(job, set)) {
        return Ok(lanes);
    }
    for ((lane, (job, set)), (queue, kind)) in lanes.iter_mut().zip(jobs.iter().zip(settings)).zip(names) {
        if let Some(special) = &defaults::special_of(job, set) {
            work.make_limits(&special.limits)?;
            let name = SpecialName { queue, kind, space, special };
            if let Some(special) = work.tx.intern_special(&[name])?.pop() {
                *lane = special;
            }
        }
    }
    Ok(lanes)
}

/// Why a new job is not taken, by its limits and its queue. Who sends a job again with its key is not asked: limits may have
/// been deleted since it was done.
fn turned_away(
    work: &mut Work<'_>,
    (job, source): (&EnqueueJob, Source),
    admitted: &mut Admitted,
) -> StoreResult<Option<Refusal>> {
    if let Some(refusal) = unknown_limit(work, job) {
        return Ok(Some(refusal));
    }
    let bounded = source == Source::Producer && !work.env.queues.is_empty();
    if bounded { queues::admit(work, job, admitted) } else { Ok(None) }
}

/// The first limit of a job that there is not. With `limits.create_on_use` there will be, if the job is accepted.
fn unknown_limit(work: &Work<'_>, job: &EnqueueJob) -> Option<Refusal> {
    if work.env.settings.unknown_limits == UnknownLimits::Create {
        return None;
    }
    match work.env.types.get(&job.kind) {
        Some(settings) => unknown(work.env.limits, &defaults::special_of(job, settings)?.limits),
        None => unknown(work.env.limits, &job.special.as_ref()?.limits),
    }
}

fn key_row(work: &Work<'_>, of: (&EnqueueJob, &TypeSettings), at: (&str, JobId, [u8; 16])) -> KeyRow {
    let ((job, settings), (key, owner, fingerprint)) = (of, at);
    KeyRow {
        key: key.to_owned(),
        owner,
        scope: job.scope.or(settings.scope).unwrap_or_default(),
        ttl_ms: job.ttl_ms.or(settings.ttl_ms).unwrap_or(work.env.settings.ttl_ms),
        fingerprint,
        tombstone: None,
    }
}

/// Writes a key that nobody holds: a new one, or one taken over from a job that has let go of it.
pub(crate) fn take_key(work: &mut Work<'_>, row: KeyRow) -> StoreResult<()> {
    let write = match work.key(&row.key)? {
        None => KeyWrite::Insert(row),
        Some(old) => KeyWrite::Replace { row, from: old.owner },
    };
    work.write_key(write);
    Ok(())
}

fn new_row(work: &Work<'_>, of: (&EnqueueJob, &TypeSettings), at: (JobId, Lane)) -> JobRow {
    let ((job, set), (id, lane), env) = (of, at, work.env);
    let max_age = job.max_age.or(set.max_age_ms.map(MaxAge::AfterMs));
    let (expires_at, max_age_ms) = match max_age {
        None => (None, None),
        Some(MaxAge::At(at)) => (Some(at), None),
        Some(MaxAge::AfterMs(ms)) => (Some(env.now.plus_ms(ms)), Some(ms)),
    };
    let new = NewJob {
        id,
        max_retries: job.max_retries.or(set.max_retries).unwrap_or(env.settings.max_retries),
        max_lease_losses: job
            .max_lease_losses
            .or(set.max_lease_losses)
            .unwrap_or(env.settings.max_lease_losses),
        available_at: due(job.start, env.now),
        expires_at,
        max_age_ms,
        on_unknown: job.on_unknown.or(set.on_unknown).unwrap_or_default(),
        now: env.now,
    };
    JobRow {
        job: Job::accepted(&new),
        lane,
        priority: admit::priority(job, set),
        payload_bytes: u32::try_from(payload_of(job).len()).unwrap_or(u32::MAX),
        note: Note::default(),
        order: None,
    }
}

/// Never before the acceptance, so that `created_at ≤ available_at` holds and overdue starts keep their order.
fn due(start: Start, now: Timestamp) -> Timestamp {
    match start {
        Start::Now => now,
        Start::AfterMs(ms) => now.plus_ms(ms),
        Start::At(at) => at.max(now),
    }
}

pub(crate) fn payload_of(job: &EnqueueJob) -> &str {
    job.payload.as_deref().unwrap_or(limits::PAYLOAD_DEFAULT)
}

/// What is kept as it was sent.
fn detail_of(job: &EnqueueJob, fingerprint: Option<[u8; 16]>, ordering: Option<Box<Ordering>>) -> Detail {
    Detail {
        payload: payload_of(job).to_owned(),
        subject: job.subject.clone(),
        correlation_id: job.correlation_id.clone(),
        traceparent: job.traceparent.clone(),
        key: None,
        fingerprint,
        scope: job.scope,
        ttl_ms: job.ttl_ms,
        on_duplicate: job.on_duplicate,
        on_mismatch: job.on_mismatch,
        lease_ms: job.lease_ms,
        timeout_ms: job.timeout_ms,
        retry: job.retry,
        supersede: job.supersede,
        ordering,
    }
}

/// Hash of what was sent, field by field and byte by byte; no canonical form, so the verdict does not depend on order.
fn fingerprint(job: &EnqueueJob) -> [u8; 16] {
    let mut fields = Fields::default();
    fields.put(Some(job.kind.as_bytes()));
    fields.put(job.queue.as_deref().map(str::as_bytes));
    fields.put(Some(payload_of(job).as_bytes()));
    fields.put(job.max_retries.map(u32::to_le_bytes).as_ref().map(<[u8; 4]>::as_slice));
    let subject = job.subject.as_ref();
    fields.put(subject.map(|subject| subject.kind.as_bytes()));
    fields.put(subject.map(|subject| subject.id.as_bytes()));
    let version = subject.and_then(|subject| subject.version).map(i64::to_le_bytes);
    fields.put(version.as_ref().map(<[u8; 8]>::as_slice));
    fields.finish()
}
