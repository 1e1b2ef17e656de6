-- Recipes that people keep. What a recipe says is in its versions; a version is written once and never changed, because
-- jobs point to the one that they were made with.
CREATE TABLE recipes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    owner_id    INTEGER REFERENCES people (id) ON DELETE SET NULL,  -- a group's recipe outlives who made it
    group_id    INTEGER REFERENCES groups (id) ON DELETE SET NULL,  -- NULL: its owner's alone
    title       TEXT    NOT NULL,                                   -- of the newest version
    created_at  INTEGER NOT NULL,
    archived_at INTEGER                                             -- deleted; old jobs still know it
) STRICT;
CREATE INDEX recipes_by_owner ON recipes (owner_id);
CREATE INDEX recipes_by_group ON recipes (group_id);

CREATE TABLE recipe_versions (
    recipe_id   INTEGER NOT NULL REFERENCES recipes (id) ON DELETE CASCADE,
    version     INTEGER NOT NULL,                                   -- from 1
    text        TEXT    NOT NULL,                                   -- the complete recipe file
    author_id   INTEGER REFERENCES people (id) ON DELETE SET NULL,
    author_name TEXT    NOT NULL,                                   -- as it read then
    note        TEXT    NOT NULL DEFAULT '',                        -- what is new in it
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (recipe_id, version)
) STRICT;
