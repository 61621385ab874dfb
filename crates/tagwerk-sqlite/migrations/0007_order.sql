-- Jobs that stand in the order of an ordering key: they wait, run, or failed and hold it. Kept apart from the hot row, so that
-- a job without such a key pays nothing. open: it runs, or it waits and is not blocked.
CREATE TABLE job_order (
    okey TEXT    NOT NULL,
    job  INTEGER NOT NULL,
    open INTEGER NOT NULL CHECK (open IN (0, 1)),
    PRIMARY KEY (okey, job)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_order_open ON job_order (okey, job) WHERE open = 1;

-- The ordering key as given, behind a letter for `on_head_failure` as given: b block, s skip, - nothing. One column behind
-- the payload: who has no such key pays a byte, and the payload's overflow pages are read for it only where there is one.
ALTER TABLE detail ADD COLUMN ordering TEXT;

-- State 2 is used from now on: a pending job that waits for its turn. Such jobs expire as well.
DROP INDEX job_expires;
CREATE INDEX job_expires ON job (expires) WHERE expires IS NOT NULL AND state IN (0, 2);
