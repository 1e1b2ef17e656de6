-- What takes the space in people's folders on clusters, as last measured: at most 20 rows for each person and cluster.
CREATE TABLE folder_sizes (
    person_id       INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id      INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    path            TEXT NOT NULL,                            -- encoded, as in URLs
    measured_at     INTEGER NOT NULL,
    disk_bytes      INTEGER,                                  -- of the whole file system; NULL: not known
    disk_free_bytes INTEGER,
    report          TEXT NOT NULL,                            -- JSON
    PRIMARY KEY (person_id, cluster_id, path)
) STRICT;
