-- People, groups and how people get in. Times are whole seconds since 1970 (UTC).

CREATE TABLE people (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    name                TEXT    NOT NULL UNIQUE,              -- what they sign in with, lower case
    display_name        TEXT    NOT NULL,
    is_admin            INTEGER NOT NULL DEFAULT 0,
    password_sealed     BLOB    NOT NULL,                     -- Argon2id hash, sealed under the master key
    password_changed_at INTEGER NOT NULL,
    totp_sealed         BLOB,                                 -- one-time-code secret, sealed; NULL: off
    totp_last_step      INTEGER NOT NULL DEFAULT 0,           -- a code is good once
    created_at          INTEGER NOT NULL,
    disabled_at         INTEGER                               -- NULL: active
) STRICT;

CREATE TABLE recovery_codes (
    person_id INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    code_hash BLOB    NOT NULL,
    used_at   INTEGER,
    PRIMARY KEY (person_id, code_hash)
) STRICT;

CREATE TABLE groups (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE COLLATE NOCASE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE memberships (
    group_id  INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    person_id INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    role      TEXT    NOT NULL CHECK (role IN ('pi', 'member')),
    since     INTEGER NOT NULL,
    PRIMARY KEY (group_id, person_id)
) STRICT;
CREATE INDEX memberships_by_person ON memberships (person_id);

-- Links that work once: the first administrator's set-up, an invitation, a password reset.
CREATE TABLE links (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    purpose    TEXT    NOT NULL CHECK (purpose IN ('setup', 'join', 'reset')),
    token_hash BLOB    NOT NULL UNIQUE,
    label      TEXT    NOT NULL DEFAULT '',                   -- who it is meant for
    group_id   INTEGER REFERENCES groups (id) ON DELETE CASCADE,
    role       TEXT    CHECK (role IN ('pi', 'member')),
    person_id  INTEGER REFERENCES people (id) ON DELETE CASCADE,
    created_by INTEGER REFERENCES people (id) ON DELETE SET NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER,
    used_by    INTEGER REFERENCES people (id) ON DELETE SET NULL,
    revoked_at INTEGER
) STRICT;

-- One row per signed-in browser. Only a hash of the cookie is kept.
CREATE TABLE sessions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash   BLOB    NOT NULL UNIQUE,
    person_id    INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    address      TEXT    NOT NULL,
    user_agent   TEXT    NOT NULL
) STRICT;
CREATE INDEX sessions_by_person ON sessions (person_id);

-- The password was right, the one-time code is still to come. Never accepted as a session.
CREATE TABLE pending_sign_ins (
    token_hash BLOB    NOT NULL PRIMARY KEY,
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    tries      INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER NOT NULL
) STRICT;

-- Who did what to what, from where, when. Names are copied: the log outlives what it speaks of.
CREATE TABLE activity (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    at           INTEGER NOT NULL,
    actor_id     INTEGER,                                     -- NULL: nobody signed in, or the command line
    actor_name   TEXT    NOT NULL,
    action       TEXT    NOT NULL,
    person_id    INTEGER,                                     -- the person it was done to, if any
    subject      TEXT    NOT NULL DEFAULT '',
    detail       TEXT    NOT NULL DEFAULT '',
    address      TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX activity_by_time ON activity (at);
CREATE INDEX activity_by_actor ON activity (actor_id, id);
CREATE INDEX activity_by_person ON activity (person_id, id);

-- Clusters this portal knows, with the host keys an administrator pinned.
CREATE TABLE clusters (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    slug       TEXT    NOT NULL UNIQUE,
    title      TEXT    NOT NULL,
    host       TEXT    NOT NULL,
    port       INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE cluster_host_keys (
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    line       TEXT    NOT NULL,                              -- 'ssh-ed25519 AAAA…'
    pinned_at  INTEGER NOT NULL,
    PRIMARY KEY (cluster_id, line)
) STRICT;

-- Small facts about this installation, such as the check value of its master key.
CREATE TABLE facts (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
