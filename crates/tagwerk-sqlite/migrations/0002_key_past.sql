-- The job that holds a key is found by the key. Only jobs that no longer hold theirs need a row to be found by it, so that a
-- job with a key writes one entry at a random place, not two.
CREATE TABLE key_past (
    key TEXT    NOT NULL,
    job INTEGER NOT NULL,
    PRIMARY KEY (key, job)
) STRICT, WITHOUT ROWID;

INSERT INTO key_past (key, job)
SELECT d.key, d.job
FROM detail d
WHERE d.key IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM idem_key k WHERE k.key = d.key AND k.owner = d.job);

DROP INDEX detail_key;
