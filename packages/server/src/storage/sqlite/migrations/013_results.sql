-- Runs by outcome and latencies by hour, and what each prompt version did. An older store counts its runs now; latencies and
-- prompt versions are counted from now on.

ALTER TABLE usage_hours ADD COLUMN runs INTEGER NOT NULL DEFAULT 0; -- that start in this hour, in rows without a model
ALTER TABLE usage_hours ADD COLUMN completed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;

INSERT INTO usage_hours (environment_id, hour, agent_id, model_key, slot, events, prompt_tokens, completion_tokens,
    total_tokens, cost_nanos, runs, completed, failed, cancelled)
  SELECT environment_id, started_at - (started_at % 3600000 + 3600000) % 3600000, agent_id, '', 0, 0, 0, 0, 0, 0,
    count(*), sum(status = 'COMPLETED'), sum(status = 'FAILED'), sum(status = 'CANCELLED')
  FROM runs WHERE true GROUP BY 1, 2, 3
  ON CONFLICT (environment_id, hour, agent_id, model_key, slot) DO UPDATE SET
    runs = excluded.runs, completed = excluded.completed, failed = excluded.failed, cancelled = excluded.cancelled;

CREATE TABLE latency_hours (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  model_key TEXT NOT NULL, -- '' for calls without a model
  call TEXT NOT NULL, -- LLM_CALL, TOOL_CALL
  bucket INTEGER NOT NULL, -- four for each doubling of the latency
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  calls INTEGER NOT NULL,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, call, bucket, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE version_runs (
  environment_id TEXT NOT NULL,
  prompt_version_id TEXT NOT NULL, -- as events name it
  run TEXT NOT NULL, -- internal id of the run
  first_at INTEGER NOT NULL,
  events INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  blocked INTEGER NOT NULL,
  approvals INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_nanos INTEGER NOT NULL,
  PRIMARY KEY (environment_id, prompt_version_id, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX version_runs_by_time ON version_runs (environment_id, first_at);
