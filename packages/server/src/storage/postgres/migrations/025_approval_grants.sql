-- Standing approvals: each use is an approval of its own.
ALTER TABLE policy_versions ADD COLUMN grants text; -- allow, never; null: never with severity CRITICAL
ALTER TABLE approvals ADD COLUMN grant_id text; -- that approved it
ALTER TABLE approvals ADD COLUMN held_until bigint; -- people are told then, unless a grant approves it first; null: they were
CREATE TABLE approval_grants (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  approval_id uuid NOT NULL, -- with which it was given
  scope text NOT NULL, -- input, tool: of the run; condition: of the agent
  tool_key text COLLATE "C" NOT NULL,
  tool_name text NOT NULL,
  key_family text NOT NULL, -- of the API key that asked
  run_id text,
  agent_id text,
  input_hash text,
  condition text,
  policies text NOT NULL, -- JSON: the versions in force
  reason text,
  most_uses bigint NOT NULL,
  uses bigint NOT NULL DEFAULT 0,
  last_used_at bigint,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  granter_kind text NOT NULL,
  granter_id text NOT NULL,
  granter_name text NOT NULL,
  ended_at bigint, -- revoked, or a policy of it changed
  ended_by text, -- name of who revoked it; null: a policy changed
  PRIMARY KEY (environment_id, id)
);
CREATE INDEX approval_grants_in_use ON approval_grants (environment_id, tool_key) WHERE ended_at IS NULL;
CREATE INDEX approval_grants_by_approval ON approval_grants (environment_id, approval_id);
