-- What a token may do, and what operators did.

ALTER TABLE operator_tokens ADD COLUMN workspace_id TEXT REFERENCES workspaces (id); -- null: every workspace
ALTER TABLE operator_tokens ADD COLUMN role TEXT NOT NULL DEFAULT 'owner';
CREATE INDEX operator_tokens_by_workspace ON operator_tokens (workspace_id, id);

-- Only ever added to. Its ids are in order of time.
CREATE TABLE audit_log (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT, -- null: the whole installation
  environment_id TEXT,
  at INTEGER NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  actor_name TEXT NOT NULL,
  action TEXT NOT NULL,
  target_kind TEXT NOT NULL,
  target_id TEXT NOT NULL,
  detail TEXT NOT NULL, -- JSON
  request_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_log_by_workspace ON audit_log (workspace_id, id);
