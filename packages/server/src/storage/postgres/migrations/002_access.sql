-- What a token may do, and what operators did.

ALTER TABLE operator_tokens ADD COLUMN workspace_id text COLLATE "C" REFERENCES workspaces (id); -- null: every workspace
ALTER TABLE operator_tokens ADD COLUMN role text NOT NULL DEFAULT 'owner';
CREATE INDEX operator_tokens_by_workspace ON operator_tokens (workspace_id, id);

-- Only ever added to. Its ids are in order of time.
CREATE TABLE audit_log (
  id text COLLATE "C" PRIMARY KEY,
  workspace_id text COLLATE "C", -- null: the whole installation
  environment_id text COLLATE "C",
  at bigint NOT NULL,
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  actor_name text NOT NULL,
  action text NOT NULL,
  target_kind text NOT NULL,
  target_id text NOT NULL,
  detail text NOT NULL, -- JSON
  request_id text NOT NULL
);
CREATE INDEX audit_log_by_workspace ON audit_log (workspace_id, id);
