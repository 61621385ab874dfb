-- Limits and fair keys. Jobs that use neither live in plain lanes, with ids above 0, and touch none of these tables.

-- Settings of limits, by name without a partition.
CREATE TABLE limit_def (
    name        TEXT    NOT NULL PRIMARY KEY,
    max_running INTEGER CHECK (max_running >= 0),
    rate_count  INTEGER CHECK (rate_count > 0),
    rate_per_ms INTEGER CHECK (rate_per_ms > 0),
    rate_spread INTEGER CHECK (rate_spread IN (0, 1))
) STRICT, WITHOUT ROWID;

-- A limit as jobs name it: a name with a partition (empty = none). `starts`: the starts within the rate's period. Running
-- jobs are counted from their rows, never kept.
CREATE TABLE lim (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    partition  TEXT    NOT NULL,
    starts     BLOB,
    hold_until INTEGER,
    UNIQUE (name, partition)
) STRICT;

-- Lanes that are more than plain: ids below 0. `class` is the plain lane of the same queue and type; 0 = no limit, '' = no
-- fair key. Rows are never changed.
CREATE TABLE special_lane (
    id     INTEGER PRIMARY KEY CHECK (id < 0),
    class  INTEGER NOT NULL CHECK (class > 0),
    first  INTEGER NOT NULL,
    second INTEGER NOT NULL,
    fair   TEXT    NOT NULL,
    UNIQUE (class, first, second, fair)
) STRICT;

DROP VIEW tagwerk_jobs;
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
       strftime('%Y-%m-%dT%H:%M:%fZ', j.finished / 1000.0, 'unixepoch') AS finished_at,
       nullif(x.fair, '') AS fair_key
FROM job j
LEFT JOIN special_lane x ON x.id = j.lane
LEFT JOIN lane l ON l.id = coalesce(x.class, j.lane)
LEFT JOIN queue q ON q.id = l.queue
LEFT JOIN type t ON t.id = l.type
LEFT JOIN detail d ON d.job = j.id
LEFT JOIN note n ON n.job = j.id
LEFT JOIN code_name s ON s.what = 'status' AND s.code = j.state
LEFT JOIN code_name fc ON fc.what = 'class' AND fc.code = j.failure % 10
LEFT JOIN code_name fr ON fr.what = 'reason' AND fr.code = j.failure / 10 % 10
LEFT JOIN code_name fz ON fz.what = 'cause' AND fz.code = j.failure / 100;
