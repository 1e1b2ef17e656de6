-- Folders that people have marked as favourites, and those that they opened last: at most 30 and 12 each. Paths are the
-- bytes that the cluster uses.
CREATE TABLE favourite_folders (
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    path       BLOB NOT NULL,
    added_at   INTEGER NOT NULL,
    PRIMARY KEY (person_id, cluster_id, path)
) STRICT;

CREATE TABLE recent_folders (
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    path       BLOB NOT NULL,
    opened_at  INTEGER NOT NULL,
    PRIMARY KEY (person_id, cluster_id, path)
) STRICT;
