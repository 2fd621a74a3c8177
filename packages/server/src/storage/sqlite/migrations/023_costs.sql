-- What model calls cost of which the client did not say it. Older runs and hours have no estimate.
ALTER TABLE runs ADD COLUMN uncosted TEXT; -- JSON: tokens by model and length of context

CREATE TABLE uncosted_hours (
  environment_id TEXT NOT NULL,
  grouped_by TEXT NOT NULL, -- agent, promptVersion
  hour INTEGER NOT NULL,
  key TEXT NOT NULL, -- internal id of the agent, or the prompt version
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
  PRIMARY KEY (environment_id, grouped_by, hour, key, model_key, context, slot)
) STRICT, WITHOUT ROWID;

-- Prices of a workspace, instead of those in the table.
CREATE TABLE prices (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  model TEXT NOT NULL,
  rates TEXT NOT NULL, -- JSON object
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, model)
) STRICT, WITHOUT ROWID;
