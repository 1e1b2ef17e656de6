-- How each person wants to see the portal's clusters: at most one row for each person and cluster.
CREATE TABLE cluster_preferences (
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    is_hidden  INTEGER NOT NULL DEFAULT 0,
    position   INTEGER,                                       -- NULL: not put in an order
    PRIMARY KEY (person_id, cluster_id)
) STRICT;
