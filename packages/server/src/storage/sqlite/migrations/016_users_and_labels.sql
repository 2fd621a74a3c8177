-- The end user of a run: the first that an event names. The key is the SHA-256 of the id.
ALTER TABLE runs ADD COLUMN user_id TEXT;
ALTER TABLE runs ADD COLUMN user_key TEXT;
-- Short hashes of its latest tool calls with their inputs, to find loops.
ALTER TABLE runs ADD COLUMN recent_calls TEXT;
-- The newest issues.
CREATE INDEX issues_by_first_seen ON issues (environment_id, first_seen, id) WHERE merged_into IS NULL;
