-- The activity log says where an upload came from, also if it ends after the request.
ALTER TABLE uploads ADD COLUMN address TEXT NOT NULL DEFAULT ''; -- of the client that began it
