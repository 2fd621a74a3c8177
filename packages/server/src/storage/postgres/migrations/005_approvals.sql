-- Control table: whoever changes the approvals of an environment takes its row first, so changes are committed in the
-- order of their revisions and nobody who follows them can miss one.
CREATE TABLE approval_feeds (
  environment_id text COLLATE "C" PRIMARY KEY,
  revision bigint NOT NULL,
  next_deadline bigint -- no pending approval expires before it; NULL: none is pending
) WITH (fillfactor = 50);
CREATE INDEX approval_feeds_by_deadline ON approval_feeds (next_deadline) WHERE next_deadline IS NOT NULL;

-- Data table. Each row changes once, when it is settled.
CREATE TABLE approvals (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  revision bigint NOT NULL, -- of the environment, at the last change of this row
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  timeout_ms bigint NOT NULL,
  decided_at bigint,
  status text COLLATE "C" NOT NULL,
  request_key text COLLATE "C" NOT NULL, -- SHA-256 of client_id and client_request_id
  input_hash text COLLATE "C" NOT NULL,
  tool_key text COLLATE "C" NOT NULL, -- SHA-256 of tool_name; so are the other keys of their texts
  agent_key text COLLATE "C" NOT NULL, -- of the agent, or else of the client
  policy_key text COLLATE "C",
  run_key text COLLATE "C",
  client_id text NOT NULL,
  client_request_id text NOT NULL,
  run_id text, -- external
  session_id text,
  agent_id text,
  policy_id text,
  tool_name text NOT NULL,
  decision_reason text,
  decider_kind text,
  decider_id text,
  decider_name text,
  reason text,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, request_key)
);
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
