-- Alerts and budgets. Each has a row in the work queue.
CREATE TABLE alerts (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL REFERENCES environments (id),
  rule TEXT NOT NULL, -- JSON object
  state TEXT NOT NULL, -- JSON object
  checked_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX alerts_by_environment ON alerts (environment_id, id);
