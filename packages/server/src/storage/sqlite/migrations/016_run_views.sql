-- Saved views of the list of runs.
CREATE TABLE run_views (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL REFERENCES environments (id),
  name TEXT NOT NULL,
  query TEXT NOT NULL, -- JSON object
  last_hours INTEGER,
  columns TEXT NOT NULL, -- JSON array
  created_at INTEGER NOT NULL,
  UNIQUE (environment_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_views_by_environment ON run_views (environment_id, id);
