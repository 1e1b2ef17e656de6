-- Node failures, preempted jobs and missed deadlines were part of "failed" and "timed_out". These columns still count
-- them, and the new ones say how many they are.
ALTER TABLE usage_daily ADD COLUMN node_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN missed_deadline INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN spare_gpu_s INTEGER NOT NULL DEFAULT 0;
-- 'cpu:3600:0:2,gpu:7200:3600:1': core seconds, GPU seconds and jobs; empty for days that were read before.
ALTER TABLE usage_daily ADD COLUMN partitions TEXT NOT NULL DEFAULT '';
ALTER TABLE usage_daily ADD COLUMN qos TEXT NOT NULL DEFAULT '';

ALTER TABLE usage_jobs ADD COLUMN submitted_at INTEGER NOT NULL DEFAULT -1; -- -1: not known
ALTER TABLE usage_jobs ADD COLUMN partition TEXT NOT NULL DEFAULT '';
ALTER TABLE usage_jobs ADD COLUMN qos TEXT NOT NULL DEFAULT '';

-- What is known about days that were read before: state 6 is a job that the cluster interrupted.
UPDATE usage_daily SET interrupted = min(failed, jobs.count)
FROM (SELECT source_id, day, user_id, kind_id, count(*) AS count FROM usage_jobs WHERE state = 6
      GROUP BY source_id, day, user_id, kind_id) AS jobs
WHERE jobs.source_id = usage_daily.source_id AND jobs.day = usage_daily.day AND jobs.user_id = usage_daily.user_id
  AND jobs.kind_id = usage_daily.kind_id;
