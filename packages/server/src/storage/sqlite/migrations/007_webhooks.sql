-- Control tables: operators write the first, and what is sent is bounded.

CREATE TABLE webhooks (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL REFERENCES environments (id),
  url TEXT NOT NULL,
  description TEXT NOT NULL,
  format TEXT NOT NULL,
  events TEXT NOT NULL, -- JSON array
  secret TEXT NOT NULL, -- needed as it is, to sign
  previous_secret TEXT,
  previous_until INTEGER, -- until when messages are signed with the previous secret too
  created_at INTEGER NOT NULL,
  disabled_at INTEGER,
  disabled_reason TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_by_environment ON webhooks (environment_id, id);

-- What is told, to each webhook on its own. The newest of each are kept.
CREATE TABLE webhook_deliveries (
  webhook_id TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  environment_id TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  next_attempt_at INTEGER,
  response_status INTEGER,
  error TEXT,
  data TEXT NOT NULL, -- JSON object
  PRIMARY KEY (webhook_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (webhook_id, status, id);
