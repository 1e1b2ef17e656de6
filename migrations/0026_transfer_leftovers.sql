-- What transfers leave on clusters under hidden names, and how it is found and removed.
ALTER TABLE transfers ADD COLUMN token TEXT NOT NULL DEFAULT '';               -- random; part of its hidden names
ALTER TABLE transfers ADD COLUMN is_clean_up_due INTEGER NOT NULL DEFAULT 0;   -- it is over, and something may be left
ALTER TABLE transfers ADD COLUMN is_dismissed INTEGER NOT NULL DEFAULT 0;      -- it goes once that is removed
CREATE INDEX transfers_to_clean_up ON transfers (id) WHERE is_clean_up_due = 1;
