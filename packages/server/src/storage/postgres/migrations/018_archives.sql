-- What operators have put away, what agents are called here, keys that another replaces, and when runs are stalled.
ALTER TABLE workspaces ADD COLUMN archived_at bigint;
ALTER TABLE environments ADD COLUMN archived_at bigint;
ALTER TABLE prompts ADD COLUMN archived_at bigint;
ALTER TABLE policies ADD COLUMN archived_at bigint;
ALTER TABLE agents ADD COLUMN archived_at bigint; -- hidden until a run starts later
ALTER TABLE agents ADD COLUMN display_name text; -- shown instead of the reported name
ALTER TABLE api_keys ADD COLUMN replaced_by text COLLATE "C"; -- id of the key that a rotation created
ALTER TABLE runs ADD COLUMN rule_closed_at bigint; -- when the stalled rule of the environment closed it

-- When a run of an environment counts as stalled. Without a row: the default, and such runs stay open.
CREATE TABLE stalled_rules (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  idle_minutes integer NOT NULL,
  close_as text -- FAILED, CANCELLED; null: stalled runs stay open
);
