-- What model calls cost of which the client did not say it. Older runs and hours have no estimate.
ALTER TABLE runs ADD COLUMN uncosted text; -- JSON: tokens by model and length of context

CREATE TABLE uncosted_hours (
  environment_id uuid NOT NULL,
  grouped_by text COLLATE "C" NOT NULL, -- agent, promptVersion
  hour bigint NOT NULL,
  key uuid NOT NULL, -- internal id of the agent, or the prompt version
  model_key text COLLATE "C" NOT NULL, -- '' for calls without a model
  context integer NOT NULL, -- the threshold that the input of the calls exceeds
  slot integer NOT NULL, -- the node that wrote it
  calls bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cache_read_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  cache_write_1h_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  PRIMARY KEY (environment_id, grouped_by, hour, key, model_key, context, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Prices of a workspace, instead of those in the table.
CREATE TABLE prices (
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  model text COLLATE "C" NOT NULL,
  rates text NOT NULL, -- JSON object
  changed_at bigint NOT NULL,
  PRIMARY KEY (workspace_id, model)
);
