-- Whether PIs of a group can read the scripts and the output of its members' jobs, which nobody shares at first.
ALTER TABLE groups ADD COLUMN shares_job_files INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memberships ADD COLUMN shares_job_files INTEGER;  -- the member's own choice; NULL: as the group

-- Jobs are opened by their number.
CREATE INDEX usage_jobs_by_number ON usage_jobs (source_id, number);

-- Who is behind a user name on a cluster that belongs to nobody in the portal, as the PIs of a group named them. User
-- names with the same name are one person.
CREATE TABLE usage_login_names (
    group_id   INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    cluster_id INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    login      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    PRIMARY KEY (group_id, cluster_id, login)
) STRICT, WITHOUT ROWID;
