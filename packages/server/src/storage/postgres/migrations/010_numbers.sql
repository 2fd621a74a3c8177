-- Events name their run and what their client repeats by number. A number takes eight bytes, where the texts took 170 in
-- each row. Rows of an older store wait in old_events, until the step before the next migration has moved them.

-- Numbers of runs and of envelopes, unique in the store. Each node takes a thousand at once.
CREATE SEQUENCE numbers INCREMENT BY 1000;

ALTER TABLE runs ADD COLUMN number bigint;

-- What the events of one agent in one client repeat. Sessions are not part of it: there are as many as runs.
CREATE TABLE envelopes (
  environment_id uuid NOT NULL,
  number bigint NOT NULL,
  envelope_key text COLLATE "C" NOT NULL, -- SHA-256 of the other columns
  client_id text NOT NULL,
  agent_id text, -- external id, as sent
  agent_name text NOT NULL,
  schema_version text,
  PRIMARY KEY (environment_id, number),
  UNIQUE (environment_id, envelope_key)
);

DROP INDEX tool_calls_by_time;
DROP STATISTICS events_of_run;
ALTER INDEX events_pkey RENAME TO old_events_pkey;
ALTER INDEX events_by_time RENAME TO old_events_by_time;
ALTER TABLE events RENAME TO old_events;

-- Rows are only added, so pages are filled. seq is the arrival order within the run, given out under the lock of the
-- run's row: a smaller seq is never committed later, so a reader that follows it misses nothing. The payload is last:
-- what stands before it is found without it.
CREATE TABLE events (
  environment_id uuid NOT NULL,
  run bigint NOT NULL, -- number of the run
  time bigint NOT NULL,
  received_at bigint NOT NULL,
  envelope bigint NOT NULL, -- number of the envelope
  seq integer NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  event_type text NOT NULL,
  label text NOT NULL,
  own_session text, -- NULL: the session of the run; '': none; else '=' and the session
  span_id text,
  parent_span_id text,
  payload text NOT NULL,
  PRIMARY KEY (environment_id, run, event_id)
) WITH (
  -- Freeze while rows are few and in memory, not all of them in one go two billion transactions later.
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 1000000,
  autovacuum_analyze_scale_factor = 0.05
);
-- It has everything that timelines select by, in their order, so no other index can seem better. By arrival, seqs are
-- found in it without the rows.
CREATE INDEX events_by_time ON events (environment_id, run, time, seq);
CREATE INDEX tool_calls_by_time ON events (environment_id, time, run, seq) WHERE event_type = 'TOOL_CALL';

-- What plans should assume, whatever a sample says: see 001.
CREATE STATISTICS events_of_run (dependencies) ON environment_id, run FROM events;
ALTER TABLE events ALTER COLUMN run SET (n_distinct = -0.02);
DO $$
BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE events ALTER COLUMN payload SET COMPRESSION lz4;
  END IF;
END $$;

-- How far the rows of an older store have been moved.
CREATE TABLE events_moved (
  environment text COLLATE "C" PRIMARY KEY,
  run text NOT NULL,
  time bigint NOT NULL,
  seq bigint NOT NULL,
  events bigint NOT NULL
);
