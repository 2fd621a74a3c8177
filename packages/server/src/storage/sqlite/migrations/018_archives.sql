-- What operators have put away, what agents are called here, keys that another replaces, and when runs are stalled.
ALTER TABLE workspaces ADD COLUMN archived_at INTEGER;
ALTER TABLE environments ADD COLUMN archived_at INTEGER;
ALTER TABLE prompts ADD COLUMN archived_at INTEGER;
ALTER TABLE policies ADD COLUMN archived_at INTEGER;
ALTER TABLE agents ADD COLUMN archived_at INTEGER; -- hidden until a run starts later
ALTER TABLE agents ADD COLUMN display_name TEXT; -- shown instead of the reported name
ALTER TABLE api_keys ADD COLUMN replaced_by TEXT; -- id of the key that a rotation created
ALTER TABLE runs ADD COLUMN rule_closed_at INTEGER; -- when the stalled rule of the environment closed it

-- When a run of an environment counts as stalled. Without a row: the default, and such runs stay open.
CREATE TABLE stalled_rules (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  idle_minutes INTEGER NOT NULL,
  close_as TEXT -- FAILED, CANCELLED; null: stalled runs stay open
) STRICT, WITHOUT ROWID;
