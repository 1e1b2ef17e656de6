-- Dashboards. A board is what someone wants to see; its runs are the jobs that show it, one after the other.
CREATE TABLE boards (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id     INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,    -- it runs as this person
    cluster_id    INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    kind          TEXT    NOT NULL CHECK (kind IN ('tensorboard', 'mlflow')),
    title         TEXT    NOT NULL,
    places        TEXT    NOT NULL,                          -- what it shows: absolute paths, a list as JSON
    minutes       INTEGER NOT NULL,                          -- how long a run is asked for
    account       TEXT    NOT NULL DEFAULT '',               -- which project pays; empty: the person's usual one
    form          TEXT    NOT NULL,                          -- the form it came from: sent twice, it is one board
    group_id      INTEGER REFERENCES groups (id) ON DELETE SET NULL,            -- whose members see it; NULL: nobody else
    wakes_per_day INTEGER NOT NULL DEFAULT 0,                -- how often they may start it in a day
    wake_minutes  INTEGER NOT NULL DEFAULT 60,               -- and for how long
    created_at    INTEGER NOT NULL,
    removed_at    INTEGER,                                   -- deleted; its runs may still be ending
    UNIQUE (person_id, form)
) STRICT;
CREATE INDEX boards_by_group ON boards (group_id) WHERE group_id IS NOT NULL;

CREATE TABLE board_runs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    board_id      INTEGER NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
    name          TEXT    NOT NULL UNIQUE,                   -- of its folder on the cluster
    folder        TEXT    NOT NULL,                          -- that folder, absolute
    submission_id INTEGER REFERENCES submissions (id) ON DELETE SET NULL,
    woken_by      INTEGER REFERENCES people (id) ON DELETE SET NULL,            -- who started it, if not its owner
    state         TEXT    NOT NULL CHECK (state IN ('asked', 'waiting', 'starting', 'ready', 'over')),
    stop          TEXT    NOT NULL DEFAULT '',               -- why it is to end: 'person', 'idle', 'replaced', 'removed'
    end           TEXT    NOT NULL DEFAULT '',               -- how it ended: 'time', 'stopped', 'idle', 'replaced', 'failed' …
    message       TEXT    NOT NULL DEFAULT '',               -- what it said last, in words
    minutes       INTEGER NOT NULL,
    begin_at      INTEGER,                                   -- a follow-up starts no earlier
    asked_at      INTEGER NOT NULL,
    started_at    INTEGER,
    ready_at      INTEGER,
    used_at       INTEGER,                                   -- when someone last looked at it
    over_at       INTEGER
) STRICT;
CREATE INDEX board_runs_by_board ON board_runs (board_id, id);
CREATE INDEX board_runs_open ON board_runs (board_id) WHERE over_at IS NULL;

-- Links by which guests see one board. Only a hash of the secret part is kept.
CREATE TABLE board_links (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    board_id    INTEGER NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
    token_hash  BLOB    NOT NULL UNIQUE,
    label       TEXT    NOT NULL,                            -- whom it is for, in its maker's words
    passphrase  TEXT    NOT NULL DEFAULT '',                 -- Argon2id hash; empty: none is asked
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    revoked_at  INTEGER,
    opened      INTEGER NOT NULL DEFAULT 0,                  -- how often
    opened_at   INTEGER                                      -- when last
) STRICT;
CREATE INDEX board_links_by_board ON board_links (board_id);

-- Browsers that may look at one board: a word in the address and a cookie, both needed. Of the cookie a hash is kept.
CREATE TABLE board_accesses (
    word        TEXT    NOT NULL PRIMARY KEY,
    cookie_hash BLOB    NOT NULL,
    board_id    INTEGER NOT NULL REFERENCES boards (id) ON DELETE CASCADE,
    session_id  INTEGER REFERENCES sessions (id) ON DELETE CASCADE,             -- someone who is signed in
    link_id     INTEGER REFERENCES board_links (id) ON DELETE CASCADE,          -- or a guest
    is_locked   INTEGER NOT NULL DEFAULT 0,                  -- the passphrase is still to come
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    CHECK ((session_id IS NULL) <> (link_id IS NULL))
) STRICT;
CREATE INDEX board_accesses_by_link ON board_accesses (link_id, created_at);
CREATE INDEX board_accesses_by_session ON board_accesses (session_id);

-- People are told that a forgotten dashboard was stopped. SQLite changes a CHECK only by writing the table anew.
CREATE TABLE new_notices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    job_id     INTEGER REFERENCES jobs (id) ON DELETE CASCADE, -- NULL: about no job
    board_id   INTEGER REFERENCES boards (id) ON DELETE CASCADE,
    kind       TEXT    NOT NULL CHECK (kind IN ('started', 'ended', 'never', 'webhook-off', 'board-idle')),
    state      TEXT    NOT NULL DEFAULT '',                   -- Slurm's word for the job when this was noticed
    restarts   INTEGER NOT NULL DEFAULT 0,                    -- a job that was put back may start and end again
    at         INTEGER NOT NULL,
    read_at    INTEGER,                                       -- NULL: not seen in the portal
    sent_at    INTEGER,                                       -- NULL: waits to be sent to the person's own address
    UNIQUE (job_id, kind, restarts)
) STRICT;
INSERT INTO new_notices (id, person_id, job_id, kind, state, restarts, at, read_at, sent_at)
    SELECT id, person_id, job_id, kind, state, restarts, at, read_at, sent_at FROM notices;
DROP TABLE notices;
ALTER TABLE new_notices RENAME TO notices;
CREATE INDEX notices_by_person ON notices (person_id, id);
CREATE INDEX notices_unread ON notices (person_id) WHERE read_at IS NULL;
CREATE INDEX notices_unsent ON notices (person_id) WHERE sent_at IS NULL;
CREATE INDEX notices_by_age ON notices (at);
