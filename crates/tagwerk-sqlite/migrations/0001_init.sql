-- The first schema. Everything is 64 bit; times are milliseconds since 1970 in UTC; names are interned to integers.
-- A file in this folder is never changed once it was released: the store compares checksums.

-- Names of queues. Rows are never deleted.
CREATE TABLE queue (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    last_claim INTEGER
) STRICT;

-- Names of job types, and their settings if they have any (`has_settings`). NULL leaves a field to the server.
CREATE TABLE type (
    id               INTEGER PRIMARY KEY,
    name             TEXT    NOT NULL UNIQUE,
    has_settings     INTEGER NOT NULL DEFAULT 0 CHECK (has_settings IN (0, 1)),
    queue            TEXT,
    prio             INTEGER,
    max_retries      INTEGER,
    max_lease_losses INTEGER,
    lease_ms         INTEGER,
    timeout_ms       INTEGER,
    max_age_ms       INTEGER,
    retry_base_ms    INTEGER,
    retry_factor     REAL,
    retry_cap_ms     INTEGER,
    retry_jitter     INTEGER,
    on_unknown       INTEGER,
    scope            INTEGER,
    ttl_ms           INTEGER,
    owner            TEXT
) STRICT;

-- A lane is an interned (queue, type). Rows are never changed or deleted, so everybody may remember them.
CREATE TABLE lane (
    id    INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL REFERENCES queue (id),
    type  INTEGER NOT NULL REFERENCES type (id),
    UNIQUE (queue, type)
) STRICT;

-- The hot row: what claims, reports and lists need, in as few bytes as possible.
-- state: 0 ready (pending), 1 running, 3 failed (in review), 5 completed, 6 cancelled; 2 and 4 are kept for pending jobs
-- that are held back. flags: see `flags.rs`. failure: cause * 100 + reason * 10 + class.
-- lease_until: the end of the attempt, min(lease_expires, time_limit).
CREATE TABLE job (
    id               INTEGER PRIMARY KEY,
    lane             INTEGER NOT NULL,
    prio             INTEGER NOT NULL CHECK (prio BETWEEN 0 AND 100),
    state            INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6),
    due              INTEGER NOT NULL,
    expires          INTEGER,
    max_age_ms       INTEGER,
    version          INTEGER NOT NULL,
    flags            INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    leases           INTEGER NOT NULL,
    retry_count      INTEGER NOT NULL,
    max_retries      INTEGER NOT NULL,
    lease_losses     INTEGER NOT NULL,
    max_lease_losses INTEGER NOT NULL,
    release_count    INTEGER NOT NULL,
    failure          INTEGER,
    payload_bytes    INTEGER NOT NULL CHECK (payload_bytes >= 0),
    created          INTEGER NOT NULL,
    updated          INTEGER NOT NULL,
    finished         INTEGER,
    lease_until      INTEGER CHECK ((lease_until IS NOT NULL) = (state = 1)),
    lease_expires    INTEGER,
    time_limit       INTEGER,
    lease_ms         INTEGER,
    claimed          INTEGER,
    lease_bits       INTEGER,
    worker           TEXT,
    request_id       TEXT
) STRICT;

-- Claim order within a lane; the id is the implicit last column. Only claimable rows are in it.
CREATE INDEX job_ready   ON job (lane, prio DESC, due) WHERE state = 0;
-- Attempts that are over, oldest end first; also the list of running jobs.
CREATE INDEX job_lease   ON job (lease_until) WHERE state = 1;
-- Pending jobs with a maximum age.
CREATE INDEX job_expires ON job (expires) WHERE expires IS NOT NULL AND state = 0;
-- The review queue.
CREATE INDEX job_review  ON job (id) WHERE state = 3;
-- A repeated claim finds its leases again.
CREATE INDEX job_request ON job (request_id) WHERE request_id IS NOT NULL AND state = 1;

-- The cold row, written once; the payload stands last so that its overflow pages are read only when it is asked for.
CREATE TABLE detail (
    job             INTEGER PRIMARY KEY,
    subject_kind    TEXT,
    subject_id      TEXT,
    subject_version INTEGER,
    correlation_id  TEXT,
    traceparent     TEXT,
    key             TEXT,
    scope           INTEGER,
    ttl_ms          INTEGER,
    on_duplicate    INTEGER,
    on_mismatch     INTEGER,
    lease_ms        INTEGER,
    timeout_ms      INTEGER,
    retry_base_ms   INTEGER,
    retry_factor    REAL,
    retry_cap_ms    INTEGER,
    retry_jitter    INTEGER,
    fingerprint     BLOB CHECK (length(fingerprint) = 16),
    payload         TEXT NOT NULL
) STRICT;

CREATE INDEX detail_subject     ON detail (subject_id, subject_kind) WHERE subject_id IS NOT NULL;
CREATE INDEX detail_correlation ON detail (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX detail_key         ON detail (key) WHERE key IS NOT NULL;

-- What a job's worker has left behind. Only jobs whose flags say so have a row. `has_progress`: the three behind it count.
CREATE TABLE note (
    job              INTEGER PRIMARY KEY,
    error            TEXT,
    has_progress     INTEGER NOT NULL CHECK (has_progress IN (0, 1)),
    progress_done    INTEGER,
    progress_total   INTEGER,
    progress_message TEXT,
    result           TEXT,
    checkpoint       TEXT
) STRICT;

-- Attempts that have ended. The `before_…` columns say what a late report goes back to.
CREATE TABLE attempt (
    job           INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    lease_bits    INTEGER NOT NULL,
    worker        TEXT    NOT NULL,
    claimed       INTEGER NOT NULL,
    lease_expires INTEGER NOT NULL,
    ended         INTEGER NOT NULL,
    outcome       INTEGER NOT NULL,
    late          INTEGER NOT NULL CHECK (late IN (0, 1)),
    report        BLOB    CHECK (length(report) = 16),
    before_retry_count  INTEGER,
    before_lease_losses INTEGER,
    before_verify       INTEGER,
    before_error        TEXT,
    refused       INTEGER NOT NULL DEFAULT 0,
    refused_call  INTEGER,
    refused_at    INTEGER,
    error         TEXT,
    PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;

-- What operators did.
CREATE TABLE action (
    job     INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    call    INTEGER NOT NULL,
    version INTEGER NOT NULL,
    text    TEXT,
    PRIMARY KEY (job, n)
) STRICT, WITHOUT ROWID;

-- Payloads that were handed out and then replaced.
CREATE TABLE payload_old (
    job     INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    payload TEXT    NOT NULL,
    PRIMARY KEY (job, n)
) STRICT, WITHOUT ROWID;

-- Idempotency keys; the `tomb_…` columns are what is left of a job that retention deleted.
CREATE TABLE idem_key (
    key           TEXT    NOT NULL PRIMARY KEY,
    owner         INTEGER NOT NULL,
    scope         INTEGER NOT NULL,
    ttl_ms        INTEGER NOT NULL,
    fingerprint   BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    tomb_status   INTEGER,
    tomb_type     TEXT,
    tomb_started  INTEGER,
    tomb_finished INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX idem_tomb ON idem_key (key) WHERE tomb_status IS NOT NULL;

-- Counters by lane, kept in the transaction of the jobs that they count.
CREATE TABLE ledger (
    lane           INTEGER PRIMARY KEY,
    enqueued       INTEGER NOT NULL DEFAULT 0,
    pending        INTEGER NOT NULL DEFAULT 0,
    running        INTEGER NOT NULL DEFAULT 0,
    completed      INTEGER NOT NULL DEFAULT 0,
    failed         INTEGER NOT NULL DEFAULT 0,
    cancelled      INTEGER NOT NULL DEFAULT 0,
    pruned         INTEGER NOT NULL DEFAULT 0,
    claims         INTEGER NOT NULL DEFAULT 0,
    completions    INTEGER NOT NULL DEFAULT 0,
    failures       INTEGER NOT NULL DEFAULT 0,
    retries        INTEGER NOT NULL DEFAULT 0,
    lease_losses   INTEGER NOT NULL DEFAULT 0,
    time_outs      INTEGER NOT NULL DEFAULT 0,
    releases       INTEGER NOT NULL DEFAULT 0,
    reviews        INTEGER NOT NULL DEFAULT 0,
    review_retries INTEGER NOT NULL DEFAULT 0
) STRICT;

-- next_job: the next id to be given out. commits: rises with every writing transaction, so that after a failed COMMIT it
-- can be seen whether it took effect.
CREATE TABLE sequence (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    next_job INTEGER NOT NULL,
    commits  INTEGER NOT NULL
) STRICT;
INSERT INTO sequence (id, next_job, commits) VALUES (1, 1, 0);

-- Until when somebody has certainly served this store.
CREATE TABLE served (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    until INTEGER
) STRICT;
INSERT INTO served (id, until) VALUES (1, NULL);

-- The store's own facts: its secret.
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Names of the numbers above, for the views. A test compares them with the program's.
CREATE TABLE code_name (
    what TEXT    NOT NULL,
    code INTEGER NOT NULL,
    name TEXT    NOT NULL,
    PRIMARY KEY (what, code)
) STRICT, WITHOUT ROWID;
INSERT INTO code_name (what, code, name) VALUES
    ('status', 0, 'pending'), ('status', 1, 'running'), ('status', 2, 'pending'), ('status', 3, 'failed'),
    ('status', 4, 'pending'), ('status', 5, 'completed'), ('status', 6, 'cancelled'),
    ('class', 1, 'transient'), ('class', 2, 'permanent'), ('class', 3, 'unknown'),
    ('reason', 1, 'retries_exhausted'), ('reason', 2, 'permanent'), ('reason', 3, 'outcome_unknown'),
    ('reason', 4, 'worker_lost'), ('reason', 5, 'expired'), ('reason', 6, 'forced'),
    ('cause', 1, 'reported'), ('cause', 2, 'lease_expired'), ('cause', 3, 'timed_out'), ('cause', 4, 'max_age'),
    ('cause', 5, 'operator'),
    ('outcome', 1, 'completed'), ('outcome', 2, 'released'), ('outcome', 3, 'lease_expired'), ('outcome', 4, 'timed_out'),
    ('outcome', 5, 'cancelled'), ('outcome', 6, 'forced'),
    ('outcome', 11, 'failed'), ('outcome', 12, 'failed'), ('outcome', 13, 'failed');

-- For people and their tools. No payload, no result, no checkpoint, no lease secrets.
CREATE VIEW tagwerk_jobs AS
SELECT j.id,
       t.name AS type,
       q.name AS queue,
       s.name AS status,
       j.prio AS priority,
       j.version,
       j.attempt,
       j.retry_count,
       j.max_retries,
       j.lease_losses,
       j.max_lease_losses,
       j.release_count,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.due / 1000.0, 'unixepoch') AS available_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.expires / 1000.0, 'unixepoch') AS expires_at,
       j.worker AS worker_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.claimed / 1000.0, 'unixepoch') AS claimed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.lease_expires / 1000.0, 'unixepoch') AS held_until,
       fc.name AS failure_class,
       fr.name AS failure_reason,
       fz.name AS failure_cause,
       n.error,
       d.key AS idempotency_key,
       d.subject_kind,
       d.subject_id,
       d.subject_version,
       d.correlation_id,
       j.payload_bytes,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.created / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.updated / 1000.0, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', j.finished / 1000.0, 'unixepoch') AS finished_at
FROM job j
LEFT JOIN lane l ON l.id = j.lane
LEFT JOIN queue q ON q.id = l.queue
LEFT JOIN type t ON t.id = l.type
LEFT JOIN detail d ON d.job = j.id
LEFT JOIN note n ON n.job = j.id
LEFT JOIN code_name s ON s.what = 'status' AND s.code = j.state
LEFT JOIN code_name fc ON fc.what = 'class' AND fc.code = j.failure % 10
LEFT JOIN code_name fr ON fr.what = 'reason' AND fr.code = j.failure / 10 % 10
LEFT JOIN code_name fz ON fz.what = 'cause' AND fz.code = j.failure / 100;

CREATE VIEW tagwerk_attempts AS
SELECT a.job AS job_id,
       a.seq,
       a.number AS attempt,
       a.worker AS worker_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', a.claimed / 1000.0, 'unixepoch') AS claimed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', a.ended / 1000.0, 'unixepoch') AS ended_at,
       o.name AS outcome,
       c.name AS class,
       a.late,
       a.error,
       a.refused AS refused_calls
FROM attempt a
LEFT JOIN code_name o ON o.what = 'outcome' AND o.code = a.outcome
LEFT JOIN code_name c ON c.what = 'class' AND c.code = a.outcome - 10;

CREATE VIEW tagwerk_payloads AS
SELECT d.job AS job_id, d.payload, n.result, n.checkpoint
FROM detail d
LEFT JOIN note n ON n.job = d.job;
