-- How long a job was suspended, in seconds: not part of its running time.
ALTER TABLE jobs ADD COLUMN suspended_s INTEGER NOT NULL DEFAULT 0;
