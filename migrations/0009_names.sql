-- Tables and columns get the words that the pages and the code use. Nothing is lost: tables are renamed, not filled anew.

ALTER TABLE facts RENAME TO settings;
ALTER TABLE links RENAME TO one_time_links;
ALTER TABLE sessions RENAME COLUMN chain TO keychain;
ALTER TABLE pending_sign_ins RENAME COLUMN chain TO keychain;

ALTER TABLE lines RENAME TO connections;
ALTER TABLE connections RENAME COLUMN wanted TO is_wanted;
ALTER TABLE connections RENAME COLUMN asks TO has_prompts;
ALTER TABLE connections RENAME COLUMN learnt TO discovered;
ALTER TABLE connections RENAME COLUMN learnt_at TO discovered_at;
ALTER TABLE connects RENAME TO connection_attempts;
DROP INDEX connects_by_cluster;
DROP INDEX connects_by_key;
CREATE INDEX connection_attempts_by_cluster ON connection_attempts (cluster_id, at);
CREATE INDEX connection_attempts_by_key ON connection_attempts (key_id, at);

-- Why a connection is not up, as a code (ssh::LoginError::code) beside the sentence: pages decide by it. Empty: no
-- problem, or none that has a code.
ALTER TABLE connections ADD COLUMN problem_code TEXT NOT NULL DEFAULT '';
UPDATE connections SET problem_code = 'key-refused' WHERE instr(problem, 'The cluster did not accept your key.') = 1;

ALTER TABLE job_moments RENAME TO job_events;
DROP INDEX job_moments_by_job;
CREATE INDEX job_events_by_job ON job_events (job_id, at);
ALTER TABLE job_papers RENAME TO job_details;
ALTER TABLE job_details RENAME COLUMN paper TO details;

ALTER TABLE boards RENAME TO dashboards;
DROP INDEX boards_by_group;
CREATE INDEX dashboards_by_group ON dashboards (group_id) WHERE group_id IS NOT NULL;
ALTER TABLE board_runs RENAME TO dashboard_runs;
ALTER TABLE dashboard_runs RENAME COLUMN board_id TO dashboard_id;
DROP INDEX board_runs_by_board;
DROP INDEX board_runs_open;
CREATE INDEX dashboard_runs_by_dashboard ON dashboard_runs (dashboard_id, id);
CREATE INDEX dashboard_runs_open ON dashboard_runs (dashboard_id) WHERE over_at IS NULL;

-- How far its job is while the run starts: 'preparing', 'starting'; empty before the job has told anything.
ALTER TABLE dashboard_runs ADD COLUMN stage TEXT NOT NULL DEFAULT '';
UPDATE dashboard_runs SET stage = iif(instr(message, 'Starting') = 1, 'starting', 'preparing')
    WHERE state = 'starting' AND message <> '';

ALTER TABLE board_links RENAME TO dashboard_guest_links;
ALTER TABLE dashboard_guest_links RENAME COLUMN board_id TO dashboard_id;
DROP INDEX board_links_by_board;
CREATE INDEX dashboard_guest_links_by_dashboard ON dashboard_guest_links (dashboard_id);
ALTER TABLE board_accesses RENAME TO dashboard_accesses;
ALTER TABLE dashboard_accesses RENAME COLUMN board_id TO dashboard_id;
ALTER TABLE dashboard_accesses RENAME COLUMN word TO access_key;
DROP INDEX board_accesses_by_link;
DROP INDEX board_accesses_by_session;
CREATE INDEX dashboard_accesses_by_link ON dashboard_accesses (link_id, created_at);
CREATE INDEX dashboard_accesses_by_session ON dashboard_accesses (session_id);
ALTER TABLE report_links RENAME TO report_guest_links;
DROP INDEX report_links_by_report;
CREATE INDEX report_guest_links_by_report ON report_guest_links (report_id);
ALTER TABLE report_accesses RENAME COLUMN word TO access_key;

ALTER TABLE usage_books RENAME TO usage_sources;
ALTER TABLE usage_sources RENAME COLUMN looked_at TO viewed_at;
ALTER TABLE usage_days RENAME COLUMN book_id TO source_id;
ALTER TABLE usage_rolls RENAME TO usage_daily;
ALTER TABLE usage_daily RENAME COLUMN book_id TO source_id;
ALTER TABLE usage_jobs RENAME COLUMN book_id TO source_id;
ALTER TABLE share_points RENAME TO fair_share_history;
ALTER TABLE usage_told RENAME TO usage_alerts_sent;
ALTER TABLE usage_alerts_sent RENAME COLUMN about TO dedup_key;

UPDATE preferences SET name = 'notifications.toasts' WHERE name = 'notices.toasts';

-- One kind of notification changes its word. SQLite changes a CHECK only by writing the table anew; no table refers to it.
CREATE TABLE notifications (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id    INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    job_id       INTEGER REFERENCES jobs (id) ON DELETE CASCADE, -- NULL: about no job
    dashboard_id INTEGER REFERENCES dashboards (id) ON DELETE CASCADE,
    group_id     INTEGER REFERENCES groups (id) ON DELETE CASCADE,
    kind         TEXT    NOT NULL
        CHECK (kind IN ('started', 'ended', 'never', 'webhook-off', 'dashboard-idle', 'group')),
    state        TEXT    NOT NULL DEFAULT '',                 -- Slurm's word for the job when this was noticed
    text         TEXT    NOT NULL DEFAULT '',                 -- about a group: the sentence
    restarts     INTEGER NOT NULL DEFAULT 0,                  -- a job that was put back may start and end again
    at           INTEGER NOT NULL,
    read_at      INTEGER,                                     -- NULL: not seen in the portal
    sent_at      INTEGER,                                     -- NULL: waits to be sent to the person's own address
    UNIQUE (job_id, kind, restarts)
) STRICT;
INSERT INTO notifications (id, person_id, job_id, dashboard_id, group_id, kind, state, text, restarts, at, read_at,
                           sent_at)
    SELECT id, person_id, job_id, board_id, group_id, iif(kind = 'board-idle', 'dashboard-idle', kind), state, text,
           restarts, at, read_at, sent_at FROM notices;
-- Ids that were given are not given again: pages remember the last one that they showed.
DELETE FROM sqlite_sequence WHERE name = 'notifications';
INSERT INTO sqlite_sequence (name, seq) SELECT 'notifications', seq FROM sqlite_sequence WHERE name = 'notices';
DROP TABLE notices;
CREATE INDEX notifications_by_person ON notifications (person_id, id);
CREATE INDEX notifications_unread ON notifications (person_id) WHERE read_at IS NULL;
CREATE INDEX notifications_unsent ON notifications (person_id) WHERE sent_at IS NULL;
CREATE INDEX notifications_by_age ON notifications (at);
