-- Which revision of the runtime configuration each client has, written once a minute.
CREATE TABLE configuration_clients (
  environment_id TEXT NOT NULL,
  identified_by TEXT NOT NULL, -- client, key
  client_id TEXT NOT NULL, -- what the client calls itself, or the id of its key
  key_id TEXT NOT NULL,
  revision TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, identified_by, client_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX configuration_clients_by_time ON configuration_clients (environment_id, seen_at);
