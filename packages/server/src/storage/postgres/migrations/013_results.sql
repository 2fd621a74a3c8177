-- Runs by outcome and latencies by hour, and what each prompt version did. An older store counts its runs now; latencies and
-- prompt versions are counted from now on.

ALTER TABLE usage_hours ADD COLUMN runs bigint NOT NULL DEFAULT 0; -- that start in this hour, in rows without a model
ALTER TABLE usage_hours ADD COLUMN completed bigint NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN failed bigint NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN cancelled bigint NOT NULL DEFAULT 0;

-- Of all tenants at once, which only a migration does.
DO $$
BEGIN
  INSERT INTO usage_hours (environment_id, hour, agent_id, model_key, slot, events, prompt_tokens, completion_tokens,
      total_tokens, cost_nanos, runs, completed, failed, cancelled)
    SELECT environment_id, started_at - (started_at % 3600000 + 3600000) % 3600000, agent_id, '', 0, 0, 0, 0, 0, 0,
      count(*), count(*) FILTER (WHERE status = 'COMPLETED'), count(*) FILTER (WHERE status = 'FAILED'),
      count(*) FILTER (WHERE status = 'CANCELLED')
    FROM runs GROUP BY 1, 2, 3
    ON CONFLICT (environment_id, hour, agent_id, model_key, slot) DO UPDATE SET
      runs = excluded.runs, completed = excluded.completed, failed = excluded.failed, cancelled = excluded.cancelled;
END $$;

CREATE TABLE latency_hours (
  environment_id uuid NOT NULL,
  hour bigint NOT NULL,
  agent_id uuid NOT NULL,
  model_key text COLLATE "C" NOT NULL, -- '' for calls without a model
  call text COLLATE "C" NOT NULL, -- LLM_CALL, TOOL_CALL
  bucket integer NOT NULL, -- four for each doubling of the latency
  slot integer NOT NULL, -- the node that wrote it
  calls bigint NOT NULL,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, call, bucket, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE version_runs (
  environment_id uuid NOT NULL,
  prompt_version_id uuid NOT NULL, -- as events name it
  run uuid NOT NULL, -- internal id of the run
  first_at bigint NOT NULL,
  events bigint NOT NULL,
  errors bigint NOT NULL,
  blocked bigint NOT NULL,
  approvals bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  total_tokens bigint NOT NULL,
  cost_nanos bigint NOT NULL,
  PRIMARY KEY (environment_id, prompt_version_id, run)
) WITH (fillfactor = 80);

CREATE INDEX version_runs_by_time ON version_runs (environment_id, first_at);
