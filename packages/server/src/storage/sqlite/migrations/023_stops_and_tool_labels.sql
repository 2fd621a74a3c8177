-- Scopes in which no guarded call may run (storage/sql/policies/stops.ts). `target`: the id as the operator named it; '' for the environment.
CREATE TABLE stops (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  id TEXT NOT NULL,
  scope TEXT NOT NULL, -- environment, agent, session or run
  target TEXT NOT NULL,
  names TEXT NOT NULL, -- JSON: what clients may report of the target
  reason TEXT NOT NULL,
  stopped_at INTEGER NOT NULL,
  stopper_kind TEXT NOT NULL,
  stopper_id TEXT NOT NULL,
  stopped_by TEXT NOT NULL,
  resumed_at INTEGER, -- null: in effect
  resumed_by TEXT,
  resume_reason TEXT,
  PRIMARY KEY (environment_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX stops_in_effect ON stops (environment_id, id) WHERE resumed_at IS NULL;

-- Labels of the tools of an environment, which its configuration serves.
CREATE TABLE tool_labels (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  rules TEXT NOT NULL, -- JSON
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;
