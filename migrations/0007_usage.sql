-- What a group's allocation went into.

-- Which accounts on which clusters are a group's, by the names that people submit with.
CREATE TABLE group_accounts (
    group_id   INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    account    TEXT    NOT NULL,
    PRIMARY KEY (group_id, cluster_id, account)
) STRICT, WITHOUT ROWID;

-- What was granted, where the cluster does not tell.
CREATE TABLE allocations (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id   INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    account    TEXT    NOT NULL,
    unit       TEXT    NOT NULL,                             -- usage::Unit: 'core-hours', 'gpu-hours', 'site-hours' …
    amount     REAL    NOT NULL CHECK (amount > 0),          -- of that unit, in the whole period
    begins_on  INTEGER NOT NULL,                             -- days since 1970, the first …
    ends_on    INTEGER NOT NULL CHECK (ends_on >= begins_on), -- … and the last of the period
    set_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX allocations_by_group ON allocations (group_id);

-- What one person has read of one account on one cluster, with their own rights. Others read for themselves.
CREATE TABLE usage_books (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    account    TEXT    NOT NULL,                             -- as Slurm names it
    has_names  INTEGER NOT NULL,                             -- 0: what others used is kept as one sum, without names
    looked_at  INTEGER NOT NULL,                             -- when someone last wanted to see it
    problem    TEXT    NOT NULL DEFAULT '',                  -- why the last try to read gave nothing, in words
    UNIQUE (person_id, cluster_id, account)
) STRICT;

-- The days that were read. Days are those of the cluster's own calendar, counted from 1970.
CREATE TABLE usage_days (
    book_id  INTEGER NOT NULL REFERENCES usage_books (id) ON DELETE CASCADE,
    day      INTEGER NOT NULL,
    read_at  INTEGER NOT NULL,
    is_final INTEGER NOT NULL,                               -- 1: long enough over, never asked again
    is_cut   INTEGER NOT NULL DEFAULT 0,                     -- 1: there was more than can be read
    PRIMARY KEY (book_id, day)
) STRICT, WITHOUT ROWID;

-- Names of people on clusters, and of sorts of jobs: each is written once.
CREATE TABLE usage_names (
    id   INTEGER PRIMARY KEY,
    name TEXT    NOT NULL UNIQUE
) STRICT;

-- One row for each day, person and sort of job: everything that pages add up. docs/FIGURES.md says what counts as what.
CREATE TABLE usage_rolls (
    book_id      INTEGER NOT NULL REFERENCES usage_books (id) ON DELETE CASCADE,
    day          INTEGER NOT NULL,
    user_id      INTEGER NOT NULL,                           -- usage_names; 0: others, without names
    kind_id      INTEGER NOT NULL,                           -- usage_names; 0: of others
    core_s       INTEGER NOT NULL,                           -- on this day
    site_ms      INTEGER NOT NULL,                           -- the site's own units, in thousandths
    gpu_s        INTEGER NOT NULL,
    gpus         TEXT    NOT NULL,                           -- the same by model: 'v100:3600,t4:20'
    jobs         INTEGER NOT NULL,                           -- that ended on this day; from here on all is about those
    done         INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    timed_out    INTEGER NOT NULL,
    memory_out   INTEGER NOT NULL,
    cancelled    INTEGER NOT NULL,
    held_core_s  INTEGER NOT NULL,                           -- of jobs of which the use was measured …
    used_core_s  INTEGER NOT NULL,                           -- … and what they used
    held_mb_s    INTEGER NOT NULL,                           -- memory, likewise
    used_mb_s    INTEGER NOT NULL,
    held_gpu_s   INTEGER NOT NULL,                           -- GPUs, likewise
    used_gpu_s   INTEGER NOT NULL,
    lost_core_s  INTEGER NOT NULL,                           -- in jobs that failed, ran out of time or memory
    lost_gpu_s   INTEGER NOT NULL,
    spare_core_s INTEGER NOT NULL,                           -- what asking for fewer cores would have saved
    spare_mb_s   INTEGER NOT NULL,                           -- what asking for less memory would have saved
    waits        TEXT    NOT NULL,                           -- jobs by how long they waited: counts of usage::waits
    PRIMARY KEY (book_id, day, user_id, kind_id)
) STRICT, WITHOUT ROWID;

-- The jobs behind it: a row for each day on which a job ran. Not those of others in a book without names.
CREATE TABLE usage_jobs (
    book_id   INTEGER NOT NULL REFERENCES usage_books (id) ON DELETE CASCADE,
    day       INTEGER NOT NULL,
    raw       INTEGER NOT NULL,                              -- Slurm's own number of this very job
    start_at  INTEGER NOT NULL,                              -- a job that was put back begins more than once
    number    INTEGER NOT NULL,
    task      INTEGER NOT NULL,                              -- -1: none
    user_id   INTEGER NOT NULL,
    kind_id   INTEGER NOT NULL,
    state     INTEGER NOT NULL,                              -- usage::Outcome
    seconds   INTEGER NOT NULL,                              -- on this day
    elapsed_s INTEGER NOT NULL,                              -- in all, so far
    wait_s    INTEGER NOT NULL,
    cores     INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    gpus      TEXT    NOT NULL,
    cpu_s     INTEGER NOT NULL,                              -- used; -1: not measured
    rss_mb    INTEGER NOT NULL,                              -- used; -1: not measured
    PRIMARY KEY (book_id, day, raw, start_at)
) STRICT, WITHOUT ROWID;

-- Fair share over time, as one person's connection told it.
CREATE TABLE share_points (
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    account    TEXT    NOT NULL,                             -- as Slurm names it
    at         INTEGER NOT NULL,
    share      REAL    NOT NULL,                             -- of the whole, from 0 to 1
    used       REAL    NOT NULL,
    PRIMARY KEY (person_id, cluster_id, account, at)
) STRICT, WITHOUT ROWID;

-- What a group's leader wants to be told.
CREATE TABLE usage_alerts (
    person_id INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    group_id  INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    kind      TEXT    NOT NULL CHECK (kind IN ('quota', 'storage', 'failing')),
    PRIMARY KEY (person_id, group_id, kind)
) STRICT, WITHOUT ROWID;
-- What they were told already: once for each thing and period.
CREATE TABLE usage_told (
    person_id INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    group_id  INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    about     TEXT    NOT NULL,                              -- 'quota:12:80', 'failing:harbour:bob:20773' …
    at        INTEGER NOT NULL,
    PRIMARY KEY (person_id, group_id, about)
) STRICT, WITHOUT ROWID;

-- Reports as they were when someone froze them.
CREATE TABLE reports (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id   INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    person_id  INTEGER REFERENCES people (id) ON DELETE SET NULL,
    title      TEXT    NOT NULL,
    body       TEXT    NOT NULL,                             -- usage::report::Report as JSON
    created_at INTEGER NOT NULL,
    removed_at INTEGER
) STRICT;
CREATE INDEX reports_by_group ON reports (group_id);
-- Links by which guests see one report, as those to dashboards.
CREATE TABLE report_links (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    report_id  INTEGER NOT NULL REFERENCES reports (id) ON DELETE CASCADE,
    token_hash BLOB    NOT NULL UNIQUE,
    label      TEXT    NOT NULL,
    passphrase TEXT    NOT NULL DEFAULT '',                  -- Argon2id hash; empty: none is asked
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER,
    opened     INTEGER NOT NULL DEFAULT 0,
    opened_at  INTEGER
) STRICT;
CREATE INDEX report_links_by_report ON report_links (report_id);
-- Browsers that may look at one report: a word in the address and a cookie, both needed.
CREATE TABLE report_accesses (
    word        TEXT    NOT NULL PRIMARY KEY,
    cookie_hash BLOB    NOT NULL,
    link_id     INTEGER NOT NULL REFERENCES report_links (id) ON DELETE CASCADE,
    is_locked   INTEGER NOT NULL DEFAULT 0,                  -- the passphrase is still to come
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX report_accesses_by_link ON report_accesses (link_id);

-- Notices about a group. SQLite changes a CHECK only by writing the table anew.
CREATE TABLE new_notices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    job_id     INTEGER REFERENCES jobs (id) ON DELETE CASCADE, -- NULL: about no job
    board_id   INTEGER REFERENCES boards (id) ON DELETE CASCADE,
    group_id   INTEGER REFERENCES groups (id) ON DELETE CASCADE,
    kind       TEXT    NOT NULL CHECK (kind IN ('started', 'ended', 'never', 'webhook-off', 'board-idle', 'group')),
    state      TEXT    NOT NULL DEFAULT '',                   -- Slurm's word for the job when this was noticed
    text       TEXT    NOT NULL DEFAULT '',                   -- about a group: the sentence
    restarts   INTEGER NOT NULL DEFAULT 0,                    -- a job that was put back may start and end again
    at         INTEGER NOT NULL,
    read_at    INTEGER,                                       -- NULL: not seen in the portal
    sent_at    INTEGER,                                       -- NULL: waits to be sent to the person's own address
    UNIQUE (job_id, kind, restarts)
) STRICT;
INSERT INTO new_notices (id, person_id, job_id, board_id, kind, state, restarts, at, read_at, sent_at)
    SELECT id, person_id, job_id, board_id, kind, state, restarts, at, read_at, sent_at FROM notices;
DROP TABLE notices;
ALTER TABLE new_notices RENAME TO notices;
CREATE INDEX notices_by_person ON notices (person_id, id);
CREATE INDEX notices_unread ON notices (person_id) WHERE read_at IS NULL;
CREATE INDEX notices_unsent ON notices (person_id) WHERE sent_at IS NULL;
CREATE INDEX notices_by_age ON notices (at);
