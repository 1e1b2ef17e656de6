-- Jobs that people handed over. A row is written before anything is sent, so that none is lost and none is sent twice.
-- It stays with its script for as long as its owner does: a job's page knows by it how the job came about.
CREATE TABLE submissions (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id      INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id     INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    token          TEXT    NOT NULL UNIQUE,                   -- what the job is found by on the cluster
    form           TEXT    NOT NULL,                          -- the form it came from: sent twice, it is one submission
    state          TEXT    NOT NULL CHECK (state IN
        ('ready', 'sent', 'checking', 'accepted', 'refused', 'not_sent', 'given_up')),
    script         TEXT    NOT NULL,
    job_name       TEXT    NOT NULL,
    folders        TEXT    NOT NULL,                          -- to make first, absolute; a list as JSON
    carrier        TEXT    NOT NULL CHECK (carrier IN ('comment', 'name')),  -- where the token travels
    recipe         TEXT    NOT NULL DEFAULT '',               -- what made the script
    recipe_version INTEGER,
    recipe_id      INTEGER,
    answers        TEXT    NOT NULL DEFAULT '',               -- what was filled in, as JSON
    sweep          TEXT    NOT NULL DEFAULT '',               -- the table of points, as JSON; empty: one job
    number         INTEGER,                                   -- of the job, once there is one
    refusal        TEXT    NOT NULL DEFAULT '',               -- what Slurm said against it
    problem        TEXT    NOT NULL DEFAULT '',               -- why nothing is certain yet, or nothing was sent
    tries          INTEGER NOT NULL DEFAULT 0,                -- times that it was sent, or may have been
    created_at     INTEGER NOT NULL,
    ready_at       INTEGER NOT NULL,                          -- since when it is to be sent
    sent_at        INTEGER,
    checked_at     INTEGER,                                   -- the last look for it that was answered
    settled_at     INTEGER,                                   -- NULL: something is still to be done
    UNIQUE (person_id, form)
) STRICT;
CREATE INDEX submissions_by_job ON submissions (person_id, cluster_id, number);
CREATE INDEX submissions_open ON submissions (person_id, cluster_id) WHERE settled_at IS NULL;
