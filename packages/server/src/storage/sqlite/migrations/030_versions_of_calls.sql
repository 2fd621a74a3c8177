-- A run keeps which prompt version its calls without a cost name, in runs.uncosted, from now on. Hours have them by agent.

ALTER TABLE uncosted_hours RENAME TO old_uncosted_hours;

CREATE TABLE uncosted_hours (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  model_key TEXT NOT NULL, -- '' for calls without a model
  context INTEGER NOT NULL, -- the threshold that the input of the calls exceeds
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  cache_write_1h_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, context, slot)
) STRICT, WITHOUT ROWID;

INSERT INTO uncosted_hours
  SELECT environment_id, hour, key, model_key, context, slot, calls, input_tokens, cache_read_tokens, cache_write_tokens,
    cache_write_1h_tokens, output_tokens, reasoning_tokens
  FROM old_uncosted_hours WHERE grouped_by = 'agent';

DROP TABLE old_uncosted_hours;
