-- Spaces: a lane belongs to one, or to none (''). The table is written anew, since a queue and type may now be there once for
-- each space. Keys of jobs in a space are kept with its name before them, and a zero byte between the two.
CREATE TABLE lane_before AS SELECT id, queue, type FROM lane;
DROP TABLE lane;
CREATE TABLE lane (
    id    INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL REFERENCES queue (id),
    type  INTEGER NOT NULL REFERENCES type (id),
    space TEXT    NOT NULL DEFAULT '',
    UNIQUE (queue, type, space)
) STRICT;
INSERT INTO lane (id, queue, type) SELECT id, queue, type FROM lane_before;
DROP TABLE lane_before;

-- NULL: the token sees all spaces, and its own jobs are in none.
ALTER TABLE token ADD COLUMN space TEXT;
