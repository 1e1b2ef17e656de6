-- Usage is read once for each group, cluster and account, over the connection of any member whose view covers the whole
-- account. A source belongs to a group; or to one person, whose view of the account does not cover all of it.
ALTER TABLE usage_sources RENAME TO old_usage_sources;
CREATE TABLE usage_sources (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id       INTEGER REFERENCES groups (id) ON DELETE CASCADE, -- one of these two
    person_id      INTEGER REFERENCES people (id) ON DELETE CASCADE,
    cluster_id     INTEGER NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    account        TEXT    NOT NULL,                         -- as Slurm names it
    viewed_at      INTEGER NOT NULL,                         -- when someone last wanted to see it
    problem        TEXT    NOT NULL DEFAULT '',              -- why the last try to read gave nothing, in words
    problem_output TEXT    NOT NULL DEFAULT '',
    UNIQUE (group_id, cluster_id, account),
    UNIQUE (person_id, cluster_id, account),
    CHECK ((group_id IS NULL) <> (person_id IS NULL))
) STRICT;

-- What is kept: for a group, what a PI has read with names, if it is certain that they saw everybody's jobs: Slurm's
-- settings say so, and other people's jobs were there. Of several PIs, the one who has read most days.
CREATE TABLE kept_usage_sources (
    old_id     INTEGER NOT NULL,
    new_id     INTEGER,
    group_id   INTEGER,
    person_id  INTEGER
) STRICT;
INSERT INTO kept_usage_sources (old_id, group_id)
    SELECT id, group_id FROM (
        SELECT s.id, a.group_id, row_number() OVER (
                   PARTITION BY a.group_id, s.cluster_id, s.account
                   ORDER BY (SELECT count(*) FROM usage_days d WHERE d.source_id = s.id) DESC, s.id) AS place
        FROM old_usage_sources s
        JOIN group_accounts a ON a.cluster_id = s.cluster_id
            AND (a.account = s.account OR substr(s.account, 1, length(a.account) + 1) = a.account || '_')
        JOIN memberships m ON m.group_id = a.group_id AND m.person_id = s.person_id AND m.role = 'pi'
        JOIN connections c ON c.person_id = s.person_id AND c.cluster_id = s.cluster_id AND c.role = 'login'
        WHERE s.has_names
          AND iif(json_valid(c.discovered), json_extract(c.discovered, '$.hides_jobs') = 0, 0)
          AND iif(json_valid(c.discovered), json_extract(c.discovered, '$.slurm_version') IS NOT NULL, 0)
          AND (SELECT count(DISTINCT d.user_id) FROM usage_daily d WHERE d.source_id = s.id AND d.user_id <> 0) > 1)
    WHERE place = 1;
-- For a person, what they have read where Slurm hides other people's jobs.
INSERT INTO kept_usage_sources (old_id, person_id)
    SELECT s.id, s.person_id FROM old_usage_sources s
    JOIN connections c ON c.person_id = s.person_id AND c.cluster_id = s.cluster_id AND c.role = 'login'
    WHERE iif(json_valid(c.discovered), json_extract(c.discovered, '$.hides_jobs') = 1, 0);
-- A source that serves two groups becomes two: the first keeps the id.
UPDATE kept_usage_sources SET new_id = old_id
    WHERE rowid IN (SELECT min(rowid) FROM kept_usage_sources GROUP BY old_id);
UPDATE kept_usage_sources SET new_id = rowid + (SELECT max(id) FROM old_usage_sources) WHERE new_id IS NULL;
INSERT INTO usage_sources (id, group_id, person_id, cluster_id, account, viewed_at, problem, problem_output)
    SELECT k.new_id, k.group_id, k.person_id, s.cluster_id, s.account, s.viewed_at, s.problem, s.problem_output
    FROM kept_usage_sources k JOIN old_usage_sources s ON s.id = k.old_id ORDER BY k.new_id;

-- The tables below refer to the sources, so they are written anew.
ALTER TABLE usage_days RENAME TO old_usage_days;
CREATE TABLE usage_days (
    source_id INTEGER NOT NULL REFERENCES usage_sources (id) ON DELETE CASCADE,
    day       INTEGER NOT NULL,
    read_at   INTEGER NOT NULL,
    is_final  INTEGER NOT NULL,                              -- 1: long enough over, never asked again
    is_cut    INTEGER NOT NULL DEFAULT 0,                    -- 1: there was more than can be read
    PRIMARY KEY (source_id, day)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_days SELECT k.new_id, d.day, d.read_at, d.is_final, d.is_cut
    FROM kept_usage_sources k JOIN old_usage_days d ON d.source_id = k.old_id;
DROP TABLE old_usage_days;

ALTER TABLE usage_daily RENAME TO old_usage_daily;
CREATE TABLE usage_daily (
    source_id    INTEGER NOT NULL REFERENCES usage_sources (id) ON DELETE CASCADE,
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
    waits        TEXT    NOT NULL,                           -- jobs by how long they waited: usage::WaitHistogram
    PRIMARY KEY (source_id, day, user_id, kind_id)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_daily SELECT k.new_id, d.day, d.user_id, d.kind_id, d.core_s, d.site_ms, d.gpu_s, d.gpus, d.jobs,
        d.done, d.failed, d.timed_out, d.memory_out, d.cancelled, d.held_core_s, d.used_core_s, d.held_mb_s,
        d.used_mb_s, d.held_gpu_s, d.used_gpu_s, d.lost_core_s, d.lost_gpu_s, d.spare_core_s, d.spare_mb_s, d.waits
    FROM kept_usage_sources k JOIN old_usage_daily d ON d.source_id = k.old_id;
DROP TABLE old_usage_daily;

ALTER TABLE usage_jobs RENAME TO old_usage_jobs;
CREATE TABLE usage_jobs (
    source_id INTEGER NOT NULL REFERENCES usage_sources (id) ON DELETE CASCADE,
    day       INTEGER NOT NULL,
    raw       INTEGER NOT NULL,                              -- Slurm's own number of this very job
    start_at  INTEGER NOT NULL,                              -- a job that was put back begins more than once
    number    INTEGER NOT NULL,
    task      INTEGER NOT NULL,                              -- -1: none
    user_id   INTEGER NOT NULL,
    kind_id   INTEGER NOT NULL,
    state     INTEGER NOT NULL,                              -- usage::UsageJobOutcome
    seconds   INTEGER NOT NULL,                              -- on this day
    elapsed_s INTEGER NOT NULL,                              -- in all, so far
    wait_s    INTEGER NOT NULL,
    cores     INTEGER NOT NULL,
    memory_mb INTEGER NOT NULL,
    gpus      TEXT    NOT NULL,
    cpu_s     INTEGER NOT NULL,                              -- used; -1: not measured
    rss_mb    INTEGER NOT NULL,                              -- used; -1: not measured
    PRIMARY KEY (source_id, day, raw, start_at)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_jobs SELECT k.new_id, j.day, j.raw, j.start_at, j.number, j.task, j.user_id, j.kind_id, j.state,
        j.seconds, j.elapsed_s, j.wait_s, j.cores, j.memory_mb, j.gpus, j.cpu_s, j.rss_mb
    FROM kept_usage_sources k JOIN old_usage_jobs j ON j.source_id = k.old_id;
DROP TABLE old_usage_jobs;

DROP TABLE kept_usage_sources;
DROP TABLE old_usage_sources;
