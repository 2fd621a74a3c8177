-- Everything lies in the schema that the connection names first. Times are milliseconds, flags 0 and 1, JSON is text, as
-- in the embedded engine. Texts whose order or equality matters have the collation "C": code points, as SQLite has it.

-- Control tables: everything that exists before a tenant's clients send anything. Small; on Citus they stay local.
-- Their ids are text: they are looked up by what people typed, and a uuid column would raise an error for most of it.

-- One row; its revision grows with every change to a tenant, key or token.
CREATE TABLE control (
  id smallint PRIMARY KEY CHECK (id = 1),
  revision bigint NOT NULL
) WITH (fillfactor = 50); -- room for versions of the row beside it, so that no index changes
INSERT INTO control (id, revision) VALUES (1, 0);

CREATE TABLE secrets (
  name text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE workspaces (
  id text COLLATE "C" PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  created_at bigint NOT NULL
);

CREATE TABLE environments (
  id text COLLATE "C" PRIMARY KEY,
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  name text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  UNIQUE (workspace_id, name)
);
CREATE INDEX environments_by_workspace ON environments (workspace_id, id);

CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  name text NOT NULL,
  hash text NOT NULL,
  scopes text NOT NULL, -- JSON array
  requests_per_second integer,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint
) WITH (fillfactor = 70);
CREATE INDEX api_keys_by_environment ON api_keys (environment_id, id);

CREATE TABLE operator_tokens (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  hash text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint
) WITH (fillfactor = 70);

-- The processes that serve this store. A slot is free again when its heartbeat is old; times are the database's.
CREATE TABLE nodes (
  slot integer PRIMARY KEY,
  node_id text COLLATE "C" NOT NULL UNIQUE,
  started_at bigint NOT NULL,
  heartbeat_at bigint NOT NULL
) WITH (fillfactor = 50);

-- Data tables: every primary and unique key starts with the environment, the column that Citus distributes them by. No
-- foreign keys: they would cost a look-up per row, and whoever writes holds the row of the run. uuid rather than text
-- saves 21 bytes in the row and in each entry of each index.

CREATE TABLE agents (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  agent_key text COLLATE "C" NOT NULL, -- SHA-256 of the key space and the external id, or else the name
  external_id text,
  name text COLLATE "C" NOT NULL, -- the newest by event time
  name_time bigint NOT NULL,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, agent_key)
) WITH (fillfactor = 80);

-- Updated by nearly every batch. None of the columns that change with every event is in an index, and half of each page
-- is left free, so that an update stays in its page and touches no index (HOT); what is dead is pruned in passing.
CREATE TABLE runs (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  agent_id uuid NOT NULL,
  started_at bigint NOT NULL,
  last_event_at bigint NOT NULL,
  received_at bigint NOT NULL,
  event_count bigint NOT NULL,
  differing_retries bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  total_tokens bigint NOT NULL,
  cost_nanos bigint NOT NULL,
  last_seq bigint NOT NULL, -- the largest seq of its events
  ended_at bigint,
  closing_seq bigint, -- seq of the event that closed the run
  run_id text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  session_key text COLLATE "C", -- SHA-256 of session_id
  session_id text,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, run_id)
) WITH (
  fillfactor = 50,
  -- Vacuum comes by rows, not by a share of a table that may be huge.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02
);
CREATE INDEX runs_by_start ON runs (environment_id, started_at, id);
CREATE INDEX runs_by_agent ON runs (environment_id, agent_id, started_at, id);
CREATE INDEX runs_by_status ON runs (environment_id, status, started_at, id);
CREATE INDEX runs_by_session ON runs (environment_id, session_key, started_at, id) WHERE session_key IS NOT NULL;

-- Rows are only added, so pages are filled. seq is the arrival order within the run, given out under the lock of the
-- run's row: who reads by it misses nothing, for a smaller seq is never committed later. The payload is last: what
-- stands before it is found without it.
CREATE TABLE events (
  environment_id uuid NOT NULL,
  run_id uuid NOT NULL, -- internal id of the run
  seq bigint NOT NULL,
  time bigint NOT NULL,
  received_at bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  client_id text NOT NULL,
  session_id text,
  agent_id text, -- external id, as sent
  agent_name text NOT NULL,
  event_type text NOT NULL,
  label text NOT NULL,
  span_id text,
  parent_span_id text,
  schema_version text,
  payload text NOT NULL,
  PRIMARY KEY (environment_id, run_id, event_id)
) WITH (
  -- Freeze while rows are few and in memory, not all of them in one go two billion transactions later.
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 1000000,
  autovacuum_analyze_scale_factor = 0.05
);
-- A run's id is unique without its environment. But with it, this index has all that timelines are asked by and is in
-- their order, so that no plan can seem better; by arrival, seqs are found in it without the rows.
CREATE INDEX events_by_time ON events (environment_id, run_id, time, seq);

-- What plans should take for granted, whatever a sample says. A run belongs to one environment: else PostgreSQL multiplies
-- the odds of both and expects one row per run, and every index of them looks equally good for a single event. Runs have
-- many events, environments many runs, for it is the large ones that a bad plan hurts.
CREATE STATISTICS events_of_run (dependencies) ON environment_id, run_id FROM events;
ALTER TABLE events ALTER COLUMN run_id SET (n_distinct = -0.02);
ALTER TABLE runs ALTER COLUMN environment_id SET (n_distinct = 100);

-- LZ4 packs as well as the older method in a fraction of the time; not every build of PostgreSQL has it.
DO $$
BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE events ALTER COLUMN payload SET COMPRESSION lz4;
  END IF;
END $$;

-- Models that have a bucket of their own in usage_hours.
CREATE TABLE models (
  environment_id uuid NOT NULL,
  model_key text COLLATE "C" NOT NULL, -- SHA-256 of model
  model text COLLATE "C" NOT NULL,
  PRIMARY KEY (environment_id, model_key)
);

-- A few rows take every update of a tenant: as runs, and each writer has rows of its own.
CREATE TABLE usage_hours (
  environment_id uuid NOT NULL,
  hour bigint NOT NULL,
  agent_id uuid NOT NULL,
  events bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  total_tokens bigint NOT NULL,
  cost_nanos bigint NOT NULL,
  slot integer NOT NULL, -- who wrote it: a lane of a node
  model_key text COLLATE "C" NOT NULL, -- '' for events without a model
  PRIMARY KEY (environment_id, hour, agent_id, model_key, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Refused events, the newest of each environment, so that people can be told why.
CREATE TABLE rejections (
  environment_id uuid NOT NULL,
  rejected_at bigint NOT NULL,
  rejection_key text COLLATE "C" NOT NULL, -- SHA-256 of run id and event id
  code text NOT NULL,
  PRIMARY KEY (environment_id, rejection_key)
);
CREATE INDEX rejections_by_age ON rejections (environment_id, rejected_at);
