-- Control table: what operators created with a key of their own, for a day.

CREATE TABLE idempotency_keys (
  actor_kind text COLLATE "C" NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL, -- SHA-256 hex of the request
  created_at bigint NOT NULL,
  state text COLLATE "C" NOT NULL,
  status integer,
  reply text, -- JSON object, without secrets
  PRIMARY KEY (actor_kind, actor_id, idempotency_key)
);
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);
