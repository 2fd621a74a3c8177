-- Which revision of the runtime configuration each client has, written once a minute.
CREATE TABLE configuration_clients (
  environment_id uuid NOT NULL,
  identified_by text COLLATE "C" NOT NULL, -- client, key
  client_id text COLLATE "C" NOT NULL, -- what the client calls itself, or the id of its key
  key_id text COLLATE "C" NOT NULL,
  revision text COLLATE "C" NOT NULL,
  seen_at bigint NOT NULL,
  PRIMARY KEY (environment_id, identified_by, client_id)
) WITH (fillfactor = 50);

CREATE INDEX configuration_clients_by_time ON configuration_clients (environment_id, seen_at);
