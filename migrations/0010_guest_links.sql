-- Guest links to dashboards and to reports come into one pair of tables. Those to dashboards keep their ids; those to
-- reports get new ones, which neither table has given before. Tokens, cookies and addresses stay as they are.

CREATE TABLE guest_links (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    dashboard_id INTEGER REFERENCES dashboards (id) ON DELETE CASCADE,      -- what it leads to: one of these two
    report_id    INTEGER REFERENCES reports (id) ON DELETE CASCADE,
    created_by   INTEGER REFERENCES people (id) ON DELETE SET NULL,         -- it works while they may share that
    token_hash   BLOB    NOT NULL UNIQUE,
    label        TEXT    NOT NULL,                            -- whom it is for, in its maker's words
    passphrase   TEXT    NOT NULL DEFAULT '',                 -- Argon2id hash; empty: none is asked
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    revoked_at   INTEGER,
    opened       INTEGER NOT NULL DEFAULT 0,                  -- how often
    opened_at    INTEGER,                                     -- when last
    CHECK ((dashboard_id IS NULL) <> (report_id IS NULL))
) STRICT;
INSERT INTO guest_links (id, dashboard_id, created_by, token_hash, label, passphrase, created_at, expires_at,
                         revoked_at, opened, opened_at)
    SELECT l.id, l.dashboard_id, d.person_id, l.token_hash, l.label, l.passphrase, l.created_at, l.expires_at,
           l.revoked_at, l.opened, l.opened_at
    FROM dashboard_guest_links l JOIN dashboards d ON d.id = l.dashboard_id ORDER BY l.id;
INSERT INTO guest_links (id, report_id, created_by, token_hash, label, passphrase, created_at, expires_at, revoked_at,
                         opened, opened_at)
    SELECT id + (SELECT max(seq) FROM sqlite_sequence WHERE name IN ('dashboard_guest_links', 'report_guest_links')),
           report_id, person_id, token_hash, label, passphrase, created_at, expires_at, revoked_at, opened, opened_at
    FROM report_guest_links ORDER BY id;
CREATE INDEX guest_links_by_dashboard ON guest_links (dashboard_id) WHERE dashboard_id IS NOT NULL;
CREATE INDEX guest_links_by_report ON guest_links (report_id) WHERE report_id IS NOT NULL;

-- Browsers of guests: a key in the address and a cookie, both needed. Of the cookie a hash is kept.
CREATE TABLE guest_link_accesses (
    access_key  TEXT    NOT NULL PRIMARY KEY,
    cookie_hash BLOB    NOT NULL,
    link_id     INTEGER NOT NULL REFERENCES guest_links (id) ON DELETE CASCADE,
    is_locked   INTEGER NOT NULL DEFAULT 0,                   -- the passphrase is still to come
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT;
INSERT INTO guest_link_accesses (access_key, cookie_hash, link_id, is_locked, created_at, expires_at)
    SELECT access_key, cookie_hash, link_id, is_locked, created_at, expires_at
    FROM dashboard_accesses WHERE link_id IS NOT NULL ORDER BY rowid;
INSERT INTO guest_link_accesses (access_key, cookie_hash, link_id, is_locked, created_at, expires_at)
    SELECT access_key, cookie_hash,
           link_id
           + (SELECT max(seq) FROM sqlite_sequence WHERE name IN ('dashboard_guest_links', 'report_guest_links')),
           is_locked, created_at, expires_at
    FROM report_accesses ORDER BY rowid;
CREATE INDEX guest_link_accesses_by_link ON guest_link_accesses (link_id, created_at);

-- What is left are the browsers of people who are signed in.
CREATE TABLE new_dashboard_accesses (
    access_key   TEXT    NOT NULL PRIMARY KEY,
    cookie_hash  BLOB    NOT NULL,
    dashboard_id INTEGER NOT NULL REFERENCES dashboards (id) ON DELETE CASCADE,
    session_id   INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
INSERT INTO new_dashboard_accesses (access_key, cookie_hash, dashboard_id, session_id, created_at, expires_at)
    SELECT access_key, cookie_hash, dashboard_id, session_id, created_at, expires_at
    FROM dashboard_accesses WHERE session_id IS NOT NULL ORDER BY rowid;
DROP TABLE dashboard_accesses;
ALTER TABLE new_dashboard_accesses RENAME TO dashboard_accesses;
CREATE INDEX dashboard_accesses_by_session ON dashboard_accesses (session_id, created_at);
CREATE INDEX dashboard_accesses_by_dashboard ON dashboard_accesses (dashboard_id);

-- Ids that were given are not given again: the last one of a link to a report, moved as above.
DELETE FROM sqlite_sequence WHERE name = 'guest_links';
INSERT INTO sqlite_sequence (name, seq)
    SELECT 'guest_links', max(seq) + coalesce(max(iif(name = 'report_guest_links', seq, 0)), 0) FROM sqlite_sequence
    WHERE name IN ('dashboard_guest_links', 'report_guest_links') HAVING count(*) > 0;
DROP TABLE report_accesses;
DROP TABLE dashboard_guest_links;
DROP TABLE report_guest_links;
