-- From which percentage a PI wants each alert, and an alert for allocations that run out early.
-- SQLite changes a CHECK only by writing the table anew.
CREATE TABLE new_usage_alerts (
    person_id INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    group_id  INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    kind      TEXT    NOT NULL CHECK (kind IN ('quota', 'storage', 'failing', 'runs-out')),
    percent   INTEGER CHECK (percent BETWEEN 1 AND 100),      -- NULL: the default of its kind, or none
    PRIMARY KEY (person_id, group_id, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO new_usage_alerts (person_id, group_id, kind) SELECT person_id, group_id, kind FROM usage_alerts;
DROP TABLE usage_alerts;
ALTER TABLE new_usage_alerts RENAME TO usage_alerts;
