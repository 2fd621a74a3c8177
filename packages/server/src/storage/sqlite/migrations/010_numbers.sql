-- Events name their run, their environment and what their client repeats by number. A number takes a few bytes, where the
-- texts took 200 in each row and 80 in each entry of an index. Rows of an older store wait in old_runs and old_events,
-- until the step before the next migration has moved them.

DROP INDEX events_by_time;
DROP INDEX tool_calls_by_time;
DROP INDEX runs_by_start;
DROP INDEX runs_by_agent;
DROP INDEX runs_by_status;
DROP INDEX runs_by_session;
DELETE FROM sqlite_stat1 WHERE tbl = 'runs';
ALTER TABLE events RENAME TO old_events;
ALTER TABLE runs RENAME TO old_runs;

-- Environments that have events.
CREATE TABLE environment_numbers (
  number INTEGER PRIMARY KEY,
  environment_id TEXT NOT NULL UNIQUE
) STRICT;

-- What the events of one agent in one client repeat. Sessions are not part of it: there are as many as runs.
CREATE TABLE envelopes (
  number INTEGER PRIMARY KEY,
  environment_id TEXT NOT NULL,
  envelope_key TEXT NOT NULL, -- SHA-256 of the other columns
  client_id TEXT NOT NULL,
  agent_id TEXT, -- external id, as sent
  agent_name TEXT NOT NULL,
  schema_version TEXT,
  UNIQUE (environment_id, envelope_key)
) STRICT;

CREATE TABLE runs (
  number INTEGER PRIMARY KEY,
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
  session_id TEXT, -- the first that an event names; it never changes
  UNIQUE (environment_id, id),
  UNIQUE (environment_id, run_id)
) STRICT;
CREATE INDEX runs_by_start ON runs (environment_id, started_at, id);
CREATE INDEX runs_by_agent ON runs (environment_id, agent_id, started_at, id);
CREATE INDEX runs_by_status ON runs (environment_id, status, started_at, id);
CREATE INDEX runs_by_session ON runs (environment_id, session_key, started_at, id) WHERE session_key IS NOT NULL;

-- Rows lie in arrival order. The payload is last, so that reading a row without it does not touch its pages.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  environment_id INTEGER NOT NULL, -- number of the environment
  run INTEGER NOT NULL, -- number of the run
  envelope INTEGER NOT NULL, -- number of the envelope
  time INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  label TEXT NOT NULL,
  own_session TEXT, -- NULL: the session of the run; '': none; else '=' and the session
  span_id TEXT,
  parent_span_id TEXT,
  payload TEXT NOT NULL,
  UNIQUE (environment_id, run, event_id)
) STRICT;
CREATE INDEX events_by_time ON events (run, time);
CREATE INDEX tool_calls_by_time ON events (environment_id, time) WHERE event_type = 'TOOL_CALL';

-- Fixed statistics, as before; the last statement makes this connection read them.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('runs', 'sqlite_autoindex_runs_1', '1000000 1000000 1'),
  ('runs', 'sqlite_autoindex_runs_2', '1000000 1000000 1'),
  ('runs', 'runs_by_start', '1000000 1000000 2 1'),
  ('runs', 'runs_by_agent', '1000000 1000000 20000 2 1'),
  ('runs', 'runs_by_status', '1000000 1000000 250000 2 1'),
  ('runs', 'runs_by_session', '1000000 1000000 5 2 1');
ANALYZE sqlite_schema;
