-- API tokens. `hash` is all that is kept of the token itself. `scopes`: names with spaces between them. `queues`, `types`:
-- patterns with line breaks between them, NULL = all. `ceiling`: priority of new jobs at most.
CREATE TABLE token (
    name      TEXT    NOT NULL PRIMARY KEY,
    hash      BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    scopes    TEXT    NOT NULL,
    queues    TEXT,
    types     TEXT,
    ceiling   INTEGER CHECK (ceiling BETWEEN 0 AND 100),
    expires   INTEGER,
    created   INTEGER NOT NULL,
    last_used INTEGER
) STRICT, WITHOUT ROWID;
