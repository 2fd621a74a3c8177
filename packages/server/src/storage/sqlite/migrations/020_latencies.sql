-- How long each event took, and the latencies of calls by prompt version. Both are stored from now on.

ALTER TABLE events ADD COLUMN latency_us INTEGER; -- NULL: its payload does not say so, or the event is older

CREATE TABLE version_latencies (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  prompt_version_id TEXT NOT NULL, -- as events name it
  call TEXT NOT NULL, -- LLM_CALL, TOOL_CALL
  bucket INTEGER NOT NULL, -- four for each doubling of the latency
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  calls INTEGER NOT NULL,
  PRIMARY KEY (environment_id, hour, prompt_version_id, call, bucket, slot)
) STRICT, WITHOUT ROWID;

CREATE INDEX version_latencies_by_version ON version_latencies (environment_id, prompt_version_id, hour);
