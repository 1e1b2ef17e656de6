-- Guest links to files and folders on clusters, and drop-boxes: links by which guests upload into a folder.
CREATE TABLE shared_paths (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE, -- over their connection
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    path       TEXT    NOT NULL,                              -- without links in it, encoded
    title      TEXT    NOT NULL,                              -- its last part, for people
    kind       TEXT    NOT NULL CHECK (kind IN ('file', 'folder', 'drop_box')),
    max_bytes  INTEGER NOT NULL DEFAULT 0,                    -- of a drop-box: what all uploads may take
    max_files  INTEGER NOT NULL DEFAULT 0,
    used_bytes INTEGER NOT NULL DEFAULT 0,                    -- what they take, announced sizes included
    used_files INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX shared_paths_by_person ON shared_paths (person_id);

-- SQLite changes a CHECK only by writing the table anew, and what refers to it as well.
CREATE TABLE new_guest_links (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    dashboard_id   INTEGER REFERENCES dashboards (id) ON DELETE CASCADE,   -- what it leads to: one of these three
    report_id      INTEGER REFERENCES reports (id) ON DELETE CASCADE,
    shared_path_id INTEGER REFERENCES shared_paths (id) ON DELETE CASCADE,
    created_by     INTEGER REFERENCES people (id) ON DELETE SET NULL,      -- it works while they may share that
    token_hash     BLOB    NOT NULL UNIQUE,
    label          TEXT    NOT NULL,                          -- whom it is for, in its maker's words
    passphrase     TEXT    NOT NULL DEFAULT '',               -- Argon2id hash; empty: none is asked
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    revoked_at     INTEGER,
    opened         INTEGER NOT NULL DEFAULT 0,                -- how often
    opened_at      INTEGER,                                   -- when last
    CHECK ((dashboard_id IS NOT NULL) + (report_id IS NOT NULL) + (shared_path_id IS NOT NULL) = 1)
) STRICT;
INSERT INTO new_guest_links (id, dashboard_id, report_id, created_by, token_hash, label, passphrase, created_at,
                             expires_at, revoked_at, opened, opened_at)
    SELECT id, dashboard_id, report_id, created_by, token_hash, label, passphrase, created_at, expires_at, revoked_at,
           opened, opened_at
    FROM guest_links ORDER BY id;
CREATE TABLE new_guest_link_accesses (
    access_key  TEXT    NOT NULL PRIMARY KEY,
    cookie_hash BLOB    NOT NULL,
    link_id     INTEGER NOT NULL REFERENCES new_guest_links (id) ON DELETE CASCADE,
    is_locked   INTEGER NOT NULL DEFAULT 0,                   -- the passphrase is still to come
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT;
INSERT INTO new_guest_link_accesses (access_key, cookie_hash, link_id, is_locked, created_at, expires_at)
    SELECT access_key, cookie_hash, link_id, is_locked, created_at, expires_at FROM guest_link_accesses ORDER BY rowid;
-- Ids that were given are not given again.
DELETE FROM sqlite_sequence WHERE name = 'new_guest_links';
INSERT INTO sqlite_sequence (name, seq) SELECT 'new_guest_links', seq FROM sqlite_sequence WHERE name = 'guest_links';
DROP TABLE guest_link_accesses;
DROP TABLE guest_links;
ALTER TABLE new_guest_links RENAME TO guest_links;
ALTER TABLE new_guest_link_accesses RENAME TO guest_link_accesses;
CREATE INDEX guest_links_by_dashboard ON guest_links (dashboard_id) WHERE dashboard_id IS NOT NULL;
CREATE INDEX guest_links_by_report ON guest_links (report_id) WHERE report_id IS NOT NULL;
CREATE INDEX guest_links_by_shared_path ON guest_links (shared_path_id) WHERE shared_path_id IS NOT NULL;
CREATE INDEX guest_link_accesses_by_link ON guest_link_accesses (link_id, created_at);

-- An upload by a guest belongs to a drop-box.
ALTER TABLE uploads ADD COLUMN drop_box_id INTEGER REFERENCES shared_paths (id) ON DELETE CASCADE;
CREATE INDEX uploads_by_drop_box ON uploads (drop_box_id) WHERE drop_box_id IS NOT NULL;
