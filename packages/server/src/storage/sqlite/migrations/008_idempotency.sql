-- Control table: what operators created with a key of their own, for a day.

CREATE TABLE idempotency_keys (
  actor_kind TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL, -- SHA-256 hex of the request
  created_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  status INTEGER,
  reply TEXT, -- JSON object, without secrets
  PRIMARY KEY (actor_kind, actor_id, idempotency_key)
) STRICT;
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);
