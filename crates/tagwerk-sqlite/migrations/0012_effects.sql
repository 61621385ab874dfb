-- The effect journal of jobs: what their workers were about to do, in the order in which it was first begun. Only jobs whose
-- flags say so have rows. `state`: 1 open, 2 done, 3 aborted. `seq`: the lease that began it. `assumed`: a person said how it ended.
CREATE TABLE effect (
    job     INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    state   INTEGER NOT NULL CHECK (state BETWEEN 1 AND 3),
    assumed INTEGER NOT NULL CHECK (assumed IN (0, 1)),
    key     TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    begun   INTEGER NOT NULL,
    ended   INTEGER CHECK ((ended IS NULL) = (state = 1)),
    result  TEXT,
    PRIMARY KEY (job, n),
    UNIQUE (job, name)
) STRICT, WITHOUT ROWID;

-- Whether all workers of a type deal with what an earlier attempt may have done.
ALTER TABLE type ADD COLUMN handles_verify INTEGER NOT NULL DEFAULT 0 CHECK (handles_verify IN (0, 1));

INSERT INTO code_name (what, code, name) VALUES ('effect', 1, 'open'), ('effect', 2, 'done'), ('effect', 3, 'aborted');

-- For people and their tools; results stand with the other contents, in the table alone.
CREATE VIEW tagwerk_effects AS
SELECT e.job AS job_id,
       e.name,
       s.name AS state,
       e.assumed,
       e.key,
       e.seq,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.begun / 1000.0, 'unixepoch') AS begun_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.ended / 1000.0, 'unixepoch') AS ended_at
FROM effect e
LEFT JOIN code_name s ON s.what = 'effect' AND s.code = e.state;
