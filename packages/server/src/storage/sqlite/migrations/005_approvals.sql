-- Control table: whoever changes the approvals of an environment takes its row first, so changes are committed in the
-- order of their revisions and nobody who follows them can miss one.
CREATE TABLE approval_feeds (
  environment_id TEXT NOT NULL PRIMARY KEY,
  revision INTEGER NOT NULL,
  next_deadline INTEGER -- no pending approval expires before it; NULL: none is pending
) STRICT, WITHOUT ROWID;
CREATE INDEX approval_feeds_by_deadline ON approval_feeds (next_deadline) WHERE next_deadline IS NOT NULL;

-- Data table.
CREATE TABLE approvals (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  request_key TEXT NOT NULL, -- SHA-256 of client_id and client_request_id
  revision INTEGER NOT NULL, -- of the environment, at the last change of this row
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  timeout_ms INTEGER NOT NULL,
  input_hash TEXT NOT NULL,
  tool_key TEXT NOT NULL, -- SHA-256 of tool_name; so are the other keys of their texts
  agent_key TEXT NOT NULL, -- of the agent, or else of the client
  policy_key TEXT,
  run_key TEXT,
  client_id TEXT NOT NULL,
  client_request_id TEXT NOT NULL,
  run_id TEXT, -- external
  session_id TEXT,
  agent_id TEXT,
  policy_id TEXT,
  tool_name TEXT NOT NULL,
  decided_at INTEGER,
  decision_reason TEXT,
  decider_kind TEXT,
  decider_id TEXT,
  decider_name TEXT,
  reason TEXT,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, request_key)
) STRICT;
CREATE INDEX approvals_by_revision ON approvals (environment_id, revision, id);
CREATE INDEX approvals_by_time ON approvals (environment_id, created_at, id);
CREATE INDEX approvals_by_status ON approvals (environment_id, status, created_at, id);
CREATE INDEX approvals_by_tool ON approvals (environment_id, tool_key, created_at, id);
CREATE INDEX approvals_by_agent ON approvals (environment_id, agent_key, created_at, id);
CREATE INDEX approvals_by_policy ON approvals (environment_id, policy_key, created_at, id) WHERE policy_key IS NOT NULL;
CREATE INDEX approvals_by_run ON approvals (environment_id, run_key, created_at, id) WHERE run_key IS NOT NULL;
CREATE INDEX approvals_pending ON approvals (environment_id, expires_at, id) WHERE status = 'PENDING';
CREATE INDEX approvals_pending_by_tool ON approvals (environment_id, tool_key, input_hash, expires_at, id)
  WHERE status = 'PENDING';
