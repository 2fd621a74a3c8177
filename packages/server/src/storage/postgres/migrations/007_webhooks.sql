-- Control tables: operators write the first, and what is sent is bounded.

CREATE TABLE webhooks (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  url text NOT NULL,
  description text NOT NULL,
  format text NOT NULL,
  events text NOT NULL, -- JSON array
  secret text NOT NULL, -- needed as it is, to sign
  previous_secret text,
  previous_until bigint, -- until when messages are signed with the previous secret too
  created_at bigint NOT NULL,
  disabled_at bigint,
  disabled_reason text
);
CREATE INDEX webhooks_by_environment ON webhooks (environment_id, id);

-- What is told, to each webhook on its own. The newest of each are kept.
CREATE TABLE webhook_deliveries (
  webhook_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  environment_id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  status text COLLATE "C" NOT NULL,
  attempts integer NOT NULL,
  created_at bigint NOT NULL,
  last_attempt_at bigint,
  next_attempt_at bigint,
  response_status integer,
  error text,
  data text NOT NULL, -- JSON object
  PRIMARY KEY (webhook_id, id)
) WITH (fillfactor = 70); -- each row is written again at every attempt
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (webhook_id, status, id);
