-- Jobs as their owners' connections told of them, and what people are told about them.

-- One row per job, or per task of an array once it has begun; the tasks that still wait together share one row
-- (task -1, `tasks` says which). Rows outlive the cluster's own memory of the job.
CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id     INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id    INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    number        INTEGER NOT NULL,                           -- of the job; for a task, of its array
    task          INTEGER NOT NULL DEFAULT -1,
    raw           INTEGER NOT NULL,                           -- Slurm's own number of this very job
    tasks         TEXT    NOT NULL DEFAULT '',                -- tasks that wait: '5-9,20%3'
    user          TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    state         TEXT    NOT NULL,                           -- Slurm's word
    reason        TEXT    NOT NULL DEFAULT '',
    account       TEXT    NOT NULL DEFAULT '',
    partition     TEXT    NOT NULL DEFAULT '',
    qos           TEXT    NOT NULL DEFAULT '',
    submitted_at  INTEGER,
    eligible_at   INTEGER,
    start_at      INTEGER,                                    -- began, or is expected to
    end_at        INTEGER,                                    -- ended, or must end
    limit_minutes INTEGER,                                    -- NULL: not known; -1: none
    cpus          INTEGER NOT NULL DEFAULT 0,
    nodes         INTEGER NOT NULL DEFAULT 0,
    memory_mb     INTEGER,
    gpus          TEXT    NOT NULL DEFAULT '',                -- 'v100:2,:1': model and count
    node_list     TEXT    NOT NULL DEFAULT '',
    priority      INTEGER NOT NULL DEFAULT 0,
    dependency    TEXT    NOT NULL DEFAULT '',
    restarts      INTEGER NOT NULL DEFAULT 0,
    exit_code     INTEGER,
    exit_signal   INTEGER,
    work_dir      TEXT    NOT NULL DEFAULT '',
    submit_line   TEXT    NOT NULL DEFAULT '',
    cancelled_by  TEXT    NOT NULL DEFAULT '',                -- number of a user on the cluster
    is_over       INTEGER NOT NULL DEFAULT 0,
    is_settled    INTEGER NOT NULL DEFAULT 0,                 -- 1: the accounting has confirmed the end
    first_seen_at INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,                           -- when the cluster last told of it
    UNIQUE (person_id, cluster_id, number, task)
) STRICT;
CREATE INDEX jobs_open ON jobs (person_id, cluster_id) WHERE is_over = 0;
CREATE INDEX jobs_ended ON jobs (person_id, end_at) WHERE is_over = 1;

-- The story of a job: each change that was seen.
CREATE TABLE job_moments (
    job_id INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    at     INTEGER NOT NULL,
    state  TEXT    NOT NULL,
    detail TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX job_moments_by_job ON job_moments (job_id, at);

-- What was read for a job's own page: script, options, files, use of resources.
CREATE TABLE job_papers (
    job_id  INTEGER NOT NULL PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    paper   TEXT    NOT NULL,                                 -- jobs::Paper as JSON
    read_at INTEGER NOT NULL
) STRICT;

-- How far a person's queue on a cluster is known.
CREATE TABLE queues (
    person_id     INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id    INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    seen_at       INTEGER,                                    -- the last picture of the queue
    history_from  INTEGER,                                    -- the accounting was read from here …
    history_until INTEGER,                                    -- … to here
    standing      TEXT    NOT NULL DEFAULT '',                -- jobs::Standing as JSON: fair-share, storage, quota
    PRIMARY KEY (person_id, cluster_id)
) STRICT;

-- What a person was told, or is to be told.
CREATE TABLE notices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    job_id     INTEGER REFERENCES jobs (id) ON DELETE CASCADE, -- NULL: about no job
    kind       TEXT    NOT NULL CHECK (kind IN ('started', 'ended', 'never', 'webhook-off')),
    state      TEXT    NOT NULL DEFAULT '',                   -- Slurm's word for the job when this was noticed
    restarts   INTEGER NOT NULL DEFAULT 0,                    -- a job that was put back may start and end again
    at         INTEGER NOT NULL,
    read_at    INTEGER,                                       -- NULL: not seen in the portal
    sent_at    INTEGER,                                       -- NULL: waits to be sent to the person's own address
    UNIQUE (job_id, kind, restarts)
) STRICT;
CREATE INDEX notices_by_person ON notices (person_id, id);
CREATE INDEX notices_unread ON notices (person_id) WHERE read_at IS NULL;
CREATE INDEX notices_unsent ON notices (person_id) WHERE sent_at IS NULL;
CREATE INDEX notices_by_age ON notices (at);

-- Where notices are sent besides: an address of the person's choice. Address and secret are sealed.
CREATE TABLE webhooks (
    person_id     INTEGER NOT NULL PRIMARY KEY REFERENCES people (id) ON DELETE CASCADE,
    url           BLOB    NOT NULL,
    secret        BLOB    NOT NULL,
    kinds         TEXT    NOT NULL,                           -- 'started,ended,never'
    created_at    INTEGER NOT NULL,
    failures      INTEGER NOT NULL DEFAULT 0,                 -- since the last message that arrived
    failing_since INTEGER,
    next_at       INTEGER NOT NULL DEFAULT 0,                 -- not before
    problem       TEXT    NOT NULL DEFAULT '',                -- of the last try, in words
    sent_at       INTEGER,
    stopped_at    INTEGER                                     -- given up: nothing is sent until its owner says so
) STRICT;

-- Small choices of a person that pages remember.
CREATE TABLE preferences (
    person_id INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    name      TEXT    NOT NULL,
    value     TEXT    NOT NULL,
    PRIMARY KEY (person_id, name)
) STRICT;
