-- How long each event took, and the latencies of calls by prompt version. Both are stored from now on.

ALTER TABLE events ADD COLUMN latency_us bigint; -- NULL: its payload does not say so, or the event is older

CREATE TABLE version_latencies (
  environment_id uuid NOT NULL,
  hour bigint NOT NULL,
  prompt_version_id uuid NOT NULL, -- as events name it
  call text COLLATE "C" NOT NULL, -- LLM_CALL, TOOL_CALL
  bucket integer NOT NULL, -- four for each doubling of the latency
  slot integer NOT NULL, -- the node that wrote it
  calls bigint NOT NULL,
  PRIMARY KEY (environment_id, hour, prompt_version_id, call, bucket, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX version_latencies_by_version ON version_latencies (environment_id, prompt_version_id, hour);
