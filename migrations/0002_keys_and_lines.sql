-- Keys, clusters in full, and the lines between people and clusters.

-- What a cluster is like (a sites::Site as JSON, without the columns beside it); empty: nothing known but the host.
ALTER TABLE clusters ADD COLUMN site TEXT NOT NULL DEFAULT '';
ALTER TABLE clusters ADD COLUMN retired_at INTEGER;           -- NULL: in use
ALTER TABLE clusters ADD COLUMN alarm_at INTEGER;             -- NULL: fine; else its host key changed and nothing may connect
ALTER TABLE clusters ADD COLUMN alarm TEXT NOT NULL DEFAULT '';

-- Host keys are pinned for each host one passes: the login host, the jump host, the automation host.
CREATE TABLE host_keys (
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    hop        TEXT    NOT NULL CHECK (hop IN ('login', 'jump', 'robot')),
    line       TEXT    NOT NULL,                              -- 'ssh-ed25519 AAAA…'
    pinned_at  INTEGER NOT NULL,
    PRIMARY KEY (cluster_id, hop, line)
) STRICT;
INSERT INTO host_keys SELECT cluster_id, 'login', line, pinned_at FROM cluster_host_keys;
DROP TABLE cluster_host_keys;

-- A person's keychain: the key that opens their SSH keys, itself sealed under their password and the master key.
CREATE TABLE keychains (
    person_id   INTEGER NOT NULL PRIMARY KEY REFERENCES people (id) ON DELETE CASCADE,
    salt        BLOB    NOT NULL,
    by_password BLOB    NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

-- The same key, sealed for one browser's cookie (of which only a hash is kept), so that a restart asks nobody again.
ALTER TABLE sessions ADD COLUMN chain BLOB;
ALTER TABLE pending_sign_ins ADD COLUMN chain BLOB;

CREATE TABLE ssh_keys (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    person_id   INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    role        TEXT    NOT NULL CHECK (role IN ('login', 'robot')),
    state       TEXT    NOT NULL CHECK (state IN ('current', 'next')),   -- next: made, not yet proven
    origin      TEXT    NOT NULL CHECK (origin IN ('made', 'imported')),
    kind        TEXT    NOT NULL,                             -- 'Ed25519', for people
    public_line TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    body        BLOB    NOT NULL,                             -- the private half, sealed under a key of its own
    own_key     BLOB    NOT NULL,                             -- that key, sealed under the keychain
    unattended  BLOB,                                         -- that key, sealed under the master key; NULL: not allowed
    created_at  INTEGER NOT NULL,
    UNIQUE (person_id, role, state)
) STRICT;

-- A person's way to a cluster.
CREATE TABLE lines (
    person_id    INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id   INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    role         TEXT    NOT NULL CHECK (role IN ('login', 'robot')),
    remote_user  TEXT    NOT NULL,
    wanted       INTEGER NOT NULL DEFAULT 0,                  -- 1: keep it up
    asks         INTEGER NOT NULL DEFAULT 0,                  -- 1: the server asked something at the last sign-in
    connected_at INTEGER,                                     -- last success
    problem      TEXT    NOT NULL DEFAULT '',                 -- why it is not up, in words
    learnt       TEXT    NOT NULL DEFAULT '',                 -- cluster::Learnt as JSON
    learnt_at    INTEGER,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (person_id, cluster_id, role)
) STRICT;

-- Every try to connect: the hourly cap is counted here (a restart must not forget it), and where a key was used.
CREATE TABLE connects (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    role       TEXT    NOT NULL,
    key_id     INTEGER REFERENCES ssh_keys (id) ON DELETE SET NULL,      -- the key that was accepted
    outcome    TEXT    NOT NULL DEFAULT 'begun'
) STRICT;
CREATE INDEX connects_by_cluster ON connects (cluster_id, at);
CREATE INDEX connects_by_key ON connects (key_id, at);
