-- Versions of the objects that jobs are about. `supersede` stands behind the payload, but its value (NULL or 1) takes no room
-- there: SQLite keeps both in the head of the row, so that no overflow page is read for it.
ALTER TABLE detail ADD COLUMN supersede INTEGER CHECK (supersede = 1);
ALTER TABLE note ADD COLUMN superseded_by INTEGER;

-- The highest version of each object that was seen, by type, and the first job that carried it. Rows stay for good.
CREATE TABLE object_version (
    type    TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    version INTEGER NOT NULL,
    job     INTEGER NOT NULL,
    PRIMARY KEY (type, kind, id)
) STRICT, WITHOUT ROWID;

-- The jobs that the next higher version supersedes if they have not come to their end by then.
CREATE TABLE object_open (
    job  INTEGER PRIMARY KEY,
    type TEXT    NOT NULL,
    kind TEXT    NOT NULL,
    id   TEXT    NOT NULL
) STRICT;

CREATE INDEX object_open_of ON object_open (id, kind, type);
