-- Standing approvals: each use is an approval of its own.
ALTER TABLE policy_versions ADD COLUMN grants TEXT; -- allow, never; null: never with severity CRITICAL
ALTER TABLE approvals ADD COLUMN grant_id TEXT; -- that approved it
ALTER TABLE approvals ADD COLUMN held_until INTEGER; -- people are told then, unless a grant approves it first; null: they were
CREATE TABLE approval_grants (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  approval_id TEXT NOT NULL, -- with which it was given
  scope TEXT NOT NULL, -- input, tool: of the run; condition: of the agent
  tool_key TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  key_family TEXT NOT NULL, -- of the API key that asked
  run_id TEXT,
  agent_id TEXT,
  input_hash TEXT,
  condition TEXT,
  policies TEXT NOT NULL, -- JSON: the versions in force
  reason TEXT,
  most_uses INTEGER NOT NULL,
  uses INTEGER NOT NULL DEFAULT 0,
  last_used_at INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  granter_kind TEXT NOT NULL,
  granter_id TEXT NOT NULL,
  granter_name TEXT NOT NULL,
  ended_at INTEGER, -- revoked, or a policy of it changed
  ended_by TEXT, -- name of who revoked it; null: a policy changed
  PRIMARY KEY (environment_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX approval_grants_in_use ON approval_grants (environment_id, tool_key) WHERE ended_at IS NULL;
CREATE INDEX approval_grants_by_approval ON approval_grants (environment_id, approval_id);
