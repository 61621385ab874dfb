-- Alerts: what rang, since when, who knows of it. `kind`, `scope`: names. `name`: of the queue or type, '' for the server.
-- `due_opened`, `due_closed`: ways on which somebody has still to be told (1 command, 2 webhook).
CREATE TABLE alert (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT    NOT NULL,
    scope      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    opened     INTEGER NOT NULL,
    seen       INTEGER NOT NULL,
    calm       INTEGER,
    closed     INTEGER,
    acked      INTEGER,
    acked_by   TEXT,
    acked_note TEXT,
    owner      TEXT,
    detail     TEXT    NOT NULL,
    value      INTEGER NOT NULL,
    threshold  INTEGER NOT NULL,
    due_opened INTEGER NOT NULL,
    due_closed INTEGER NOT NULL
) STRICT;
-- One thing has one open alert.
CREATE UNIQUE INDEX alert_open ON alert (kind, scope, name) WHERE closed IS NULL;
CREATE INDEX alert_due ON alert (id) WHERE due_opened <> 0 OR due_closed <> 0;

-- Up to which entry into review a type has been judged, so that what comes there while nobody looks is told later.
CREATE TABLE alert_mark (
    type    TEXT    NOT NULL PRIMARY KEY,
    reviews INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- What came into review before there were alerts is not new.
INSERT INTO alert_mark (type, reviews)
SELECT type.name, sum(ledger.reviews)
FROM ledger JOIN lane ON lane.id = ledger.lane JOIN type ON type.id = lane.type
GROUP BY type.id HAVING sum(ledger.reviews) > 0;
