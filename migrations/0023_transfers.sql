-- Work on files that goes on in the background, whether or not a page shows it.
CREATE TABLE transfers (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id         INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    kind              TEXT    NOT NULL,                     -- 'delete', 'copy', 'fetch'
    cluster_id        INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    folder            BLOB    NOT NULL,                     -- where the items are, or where a download goes: bytes of a path
    names             BLOB    NOT NULL,                     -- the items in it, each ended by a zero byte
    url               TEXT    NOT NULL DEFAULT '',          -- where a download comes from
    target_cluster_id INTEGER REFERENCES clusters (id) ON DELETE CASCADE, -- NULL: the same
    target_folder     BLOB    NOT NULL DEFAULT x'',         -- where copies go
    state             TEXT    NOT NULL
        CHECK (state IN ('queued', 'running', 'paused', 'done', 'failed', 'cancelled')),
    files_done        INTEGER NOT NULL DEFAULT 0,
    files_total       INTEGER NOT NULL DEFAULT 0,           -- 0: not counted
    bytes_done        INTEGER NOT NULL DEFAULT 0,
    bytes_total       INTEGER NOT NULL DEFAULT 0,           -- 0: not known
    checkpoint        TEXT    NOT NULL DEFAULT '',          -- JSON: where to go on from
    message           TEXT    NOT NULL DEFAULT '',          -- why it failed, or what to know about the result
    created_at        INTEGER NOT NULL,
    started_at        INTEGER,
    ended_at          INTEGER
) STRICT;
CREATE INDEX transfers_by_person ON transfers (person_id, id);
CREATE INDEX transfers_open ON transfers (person_id) WHERE ended_at IS NULL;

-- Notifications about transfers. SQLite changes a CHECK only by writing the table anew; no table refers to it.
CREATE TABLE new_notifications (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id    INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    job_id       INTEGER REFERENCES jobs (id) ON DELETE CASCADE, -- NULL: about no job
    dashboard_id INTEGER REFERENCES dashboards (id) ON DELETE CASCADE,
    group_id     INTEGER REFERENCES groups (id) ON DELETE CASCADE,
    kind         TEXT    NOT NULL
        CHECK (kind IN ('started', 'ended', 'never', 'webhook-off', 'dashboard-idle', 'group', 'transfer')),
    state        TEXT    NOT NULL DEFAULT '',                 -- Slurm's word for the job when this was noticed
    text         TEXT    NOT NULL DEFAULT '',                 -- about a group or a transfer: the sentence
    restarts     INTEGER NOT NULL DEFAULT 0,                  -- a job that was put back may start and end again
    at           INTEGER NOT NULL,
    read_at      INTEGER,                                     -- NULL: not seen in the portal
    sent_at      INTEGER,                                     -- NULL: waits to be sent to the person's own address
    UNIQUE (job_id, kind, restarts)
) STRICT;
INSERT INTO new_notifications (id, person_id, job_id, dashboard_id, group_id, kind, state, text, restarts, at, read_at,
                               sent_at)
    SELECT id, person_id, job_id, dashboard_id, group_id, kind, state, text, restarts, at, read_at, sent_at
    FROM notifications;
-- Ids that were given are not given again: pages remember the last one that they showed.
DELETE FROM sqlite_sequence WHERE name = 'new_notifications';
INSERT INTO sqlite_sequence (name, seq) SELECT 'new_notifications', seq FROM sqlite_sequence WHERE name = 'notifications';
DROP TABLE notifications;
ALTER TABLE new_notifications RENAME TO notifications;
CREATE INDEX notifications_by_person ON notifications (person_id, id);
CREATE INDEX notifications_unread ON notifications (person_id) WHERE read_at IS NULL;
CREATE INDEX notifications_unsent ON notifications (person_id) WHERE sent_at IS NULL;
CREATE INDEX notifications_by_age ON notifications (at);
