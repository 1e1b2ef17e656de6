-- Files on their way to a cluster. Their bytes go to a temporary file beside the target, never to this machine.
CREATE TABLE uploads (
    id         TEXT    PRIMARY KEY,  -- random: it is in the upload's address
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    target     TEXT    NOT NULL,     -- the file's path on the cluster, encoded
    temporary  TEXT    NOT NULL,     -- the path that it is written to first, encoded
    metadata   TEXT    NOT NULL,     -- as the client sent it; clients can ask for it
    size       INTEGER NOT NULL,
    confirmed  INTEGER NOT NULL,     -- so many bytes are certainly on the cluster
    checksum_state INTEGER NOT NULL, -- of the checksum of these bytes, to be continued
    replaces   INTEGER NOT NULL,     -- whether the file may replace one with the same name
    modified_at INTEGER,             -- the file's own time
    state      TEXT    NOT NULL,     -- receiving, name_taken, finished
    problem    TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX uploads_by_person ON uploads (person_id, cluster_id);
CREATE INDEX uploads_by_age ON uploads (touched_at);
