-- Search over payload text, for environments where it is on.

CREATE TABLE search_settings (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  state text NOT NULL, -- ON, REMOVING
  changed_at bigint NOT NULL,
  older_before bigint, -- runs that start earlier are not yet queued; null: all are
  older_id text COLLATE "C", -- with older_before: the last run that was queued
  indexed_events bigint NOT NULL,
  error text
);

-- How far the events of each run are indexed.
CREATE TABLE search_runs (
  environment_id uuid NOT NULL,
  run bigint NOT NULL, -- number of the run
  id uuid NOT NULL, -- internal id of the run
  indexed_seq bigint NOT NULL,
  marks bigint NOT NULL, -- how often events were added
  marked_at bigint, -- since when events wait; null: all are indexed
  PRIMARY KEY (environment_id, run)
) WITH (fillfactor = 70);
CREATE INDEX search_runs_marked ON search_runs (environment_id, run) WHERE marked_at IS NOT NULL;

-- Indexed events, with hashes of their words. A hash includes the environment and the hour of the event.
CREATE TABLE search_entries (
  environment_id uuid NOT NULL,
  run bigint NOT NULL, -- number of the run
  seq bigint NOT NULL,
  time bigint NOT NULL,
  words integer[] NOT NULL,
  PRIMARY KEY (environment_id, run, seq)
);
CREATE INDEX search_entries_by_words ON search_entries USING gin (words) WITH (gin_pending_list_limit = 256);
