-- The audit log: what operators did, to anything. Numbers are never used again.
CREATE TABLE audit (
    n      INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    who    TEXT    NOT NULL,
    action TEXT    NOT NULL,
    target TEXT    NOT NULL,
    note   TEXT
) STRICT;
