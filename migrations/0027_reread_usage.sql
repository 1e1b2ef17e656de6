-- Days that a version before 0018 read have no partitions, and count node failures and missed deadlines with other
-- endings. They are read again once, in the background.
ALTER TABLE usage_days ADD COLUMN is_outdated INTEGER NOT NULL DEFAULT 0; -- 1: settled, but read by such a version
UPDATE usage_days SET is_final = 0, is_outdated = 1
WHERE is_final = 1 AND EXISTS (
    SELECT 1 FROM usage_daily d
    WHERE d.source_id = usage_days.source_id AND d.day = usage_days.day AND d.partitions = '');
