-- Alerts and budgets. Each has a row in the work queue.
CREATE TABLE alerts (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  rule text NOT NULL, -- JSON object
  state text NOT NULL, -- JSON object
  checked_at bigint,
  created_at bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX alerts_by_environment ON alerts (environment_id, id);
