-- How long an environment keeps things. environment_id '': what the other environments of the workspace follow.
CREATE TABLE retention_settings (
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  environment_id text COLLATE "C" NOT NULL,
  run_days integer, -- null: for ever; so are the next
  payload_days integer,
  issue_days integer,
  approval_days integer,
  audit_days integer,
  keep_open_issue_runs integer NOT NULL,
  PRIMARY KEY (workspace_id, environment_id)
);

-- What retention did in an environment.
CREATE TABLE retention_progress (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  pass_started_at bigint NOT NULL,
  pass_ended_at bigint, -- null: the pass is not at its end
  last_slice_at bigint,
  reached_at bigint, -- runs that started before were examined in this pass
  pass text NOT NULL, -- JSON object: what this pass removed
  total text NOT NULL -- the same of all passes
) WITH (fillfactor = 50);

ALTER TABLE runs ADD COLUMN pinned_at bigint; -- null: not pinned
ALTER TABLE runs ADD COLUMN payloads_removed bigint NOT NULL DEFAULT 0; -- events of the run without their payloads

-- The oldest entries of an environment, and those of its workspace alone.
CREATE INDEX audit_log_by_environment ON audit_log (environment_id, id) WHERE environment_id IS NOT NULL;
CREATE INDEX audit_log_of_workspace ON audit_log (workspace_id, id) WHERE environment_id IS NULL;

-- Retention deletes old events in bulk. Vacuum gives their space back for new ones after two in a hundred rows, not
-- after twenty, so the table does not grow while it is emptied.
ALTER TABLE events SET (autovacuum_vacuum_scale_factor = 0.02);
