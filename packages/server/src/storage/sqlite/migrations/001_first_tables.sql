-- Control tables: everything that exists before a tenant's clients send anything.

-- One row; its revision grows with every change to a tenant, key or token.
CREATE TABLE control (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  revision INTEGER NOT NULL
) STRICT;
INSERT INTO control (id, revision) VALUES (1, 0);

CREATE TABLE secrets (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE workspaces (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE environments (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (workspace_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX environments_by_workspace ON environments (workspace_id, id);

CREATE TABLE api_keys (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL REFERENCES environments (id),
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  scopes TEXT NOT NULL, -- JSON array
  requests_per_second INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_environment ON api_keys (environment_id, id);

CREATE TABLE operator_tokens (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;

-- Data tables: every key starts with the environment. No foreign keys: the one writer keeps them consistent.

CREATE TABLE agents (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_key TEXT NOT NULL, -- SHA-256 of the key space and the external id, or else the name
  external_id TEXT,
  name TEXT NOT NULL, -- the newest by event time
  name_time INTEGER NOT NULL,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, agent_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  status TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  session_key TEXT, -- SHA-256 of session_id
  last_event_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  event_count INTEGER NOT NULL,
  differing_retries INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_nanos INTEGER NOT NULL,
  ended_at INTEGER,
  closing_seq INTEGER, -- seq of the event that closed the run
  session_id TEXT,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, run_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_start ON runs (environment_id, started_at, id);
CREATE INDEX runs_by_agent ON runs (environment_id, agent_id, started_at, id);
CREATE INDEX runs_by_status ON runs (environment_id, status, started_at, id);
CREATE INDEX runs_by_session ON runs (environment_id, session_key, started_at, id) WHERE session_key IS NOT NULL;

-- Rows lie in arrival order. The payload is last, so that reading a row without it does not touch its pages.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  environment_id TEXT NOT NULL,
  run_id TEXT NOT NULL, -- internal id of the run
  event_id TEXT NOT NULL,
  time INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  client_id TEXT NOT NULL,
  session_id TEXT,
  agent_id TEXT, -- external id, as sent
  agent_name TEXT NOT NULL,
  event_type TEXT NOT NULL,
  label TEXT NOT NULL,
  span_id TEXT,
  parent_span_id TEXT,
  schema_version TEXT,
  payload TEXT NOT NULL,
  UNIQUE (environment_id, run_id, event_id)
) STRICT;
CREATE INDEX events_by_time ON events (run_id, time);

-- Models that have a bucket of their own in usage_hours.
CREATE TABLE models (
  environment_id TEXT NOT NULL,
  model_key TEXT NOT NULL, -- SHA-256 of model
  model TEXT NOT NULL,
  PRIMARY KEY (environment_id, model_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_hours (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  model_key TEXT NOT NULL, -- '' for events without a model
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  events INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_nanos INTEGER NOT NULL,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, slot)
) STRICT, WITHOUT ROWID;

-- Refused events, the newest of each environment, so that people can be told why.
CREATE TABLE rejections (
  environment_id TEXT NOT NULL,
  rejection_key TEXT NOT NULL, -- SHA-256 of run id and event id
  code TEXT NOT NULL,
  rejected_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, rejection_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX rejections_by_age ON rejections (environment_id, rejected_at);

-- Fixed statistics, for ANALYZE is never run. Without them the planner takes runs_by_start for a status or an agent
-- within a span of time, and walks over every run of that span.
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('runs', 'runs', '1000000 1000000 1'),
  ('runs', 'sqlite_autoindex_runs_2', '1000000 1000000 1'),
  ('runs', 'runs_by_start', '1000000 1000000 2 1'),
  ('runs', 'runs_by_agent', '1000000 1000000 20000 2 1'),
  ('runs', 'runs_by_status', '1000000 1000000 250000 2 1'),
  ('runs', 'runs_by_session', '1000000 1000000 5 2 1');
