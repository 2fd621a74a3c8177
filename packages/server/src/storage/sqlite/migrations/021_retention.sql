-- How long an environment keeps things. environment_id '': what the other environments of the workspace follow.
CREATE TABLE retention_settings (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  environment_id TEXT NOT NULL,
  run_days INTEGER, -- null: for ever; so are the next
  payload_days INTEGER,
  issue_days INTEGER,
  approval_days INTEGER,
  audit_days INTEGER,
  keep_open_issue_runs INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, environment_id)
) STRICT, WITHOUT ROWID;

-- What retention did in an environment.
CREATE TABLE retention_progress (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  pass_started_at INTEGER NOT NULL,
  pass_ended_at INTEGER, -- null: the pass is not at its end
  last_slice_at INTEGER,
  reached_at INTEGER, -- runs that started before were examined in this pass
  pass TEXT NOT NULL, -- JSON object: what this pass removed
  total TEXT NOT NULL -- the same of all passes
) STRICT, WITHOUT ROWID;

ALTER TABLE runs ADD COLUMN pinned_at INTEGER; -- null: not pinned
ALTER TABLE runs ADD COLUMN payloads_removed INTEGER NOT NULL DEFAULT 0; -- events of the run without their payloads

-- The oldest entries of an environment, and those of its workspace alone.
CREATE INDEX audit_log_by_environment ON audit_log (environment_id, id) WHERE environment_id IS NOT NULL;
CREATE INDEX audit_log_of_workspace ON audit_log (workspace_id, id) WHERE environment_id IS NULL;
