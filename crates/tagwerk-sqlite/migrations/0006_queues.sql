-- What operators say about a queue: bounds, reasons to hand out none of its jobs, whether producers are refused.
ALTER TABLE queue ADD COLUMN max_running INTEGER;
ALTER TABLE queue ADD COLUMN reserve_slots INTEGER;
ALTER TABLE queue ADD COLUMN reserve_from INTEGER;
ALTER TABLE queue ADD COLUMN max_depth INTEGER;
-- Producers are refused since then.
ALTER TABLE queue ADD COLUMN drain_at INTEGER;
ALTER TABLE queue ADD COLUMN drain_by TEXT;
ALTER TABLE queue ADD COLUMN drain_reason TEXT;

-- Reasons for a pause in the order in which they came.
CREATE TABLE queue_pause (
    queue  INTEGER NOT NULL REFERENCES queue (id),
    n      INTEGER NOT NULL,
    reason TEXT    NOT NULL,
    by     TEXT,
    at     INTEGER NOT NULL,
    PRIMARY KEY (queue, n)
) STRICT, WITHOUT ROWID;
