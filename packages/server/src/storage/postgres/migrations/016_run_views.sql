-- Saved views of the list of runs.
CREATE TABLE run_views (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  name text COLLATE "C" NOT NULL,
  query text NOT NULL, -- JSON object
  last_hours integer,
  columns text NOT NULL, -- JSON array
  created_at bigint NOT NULL,
  UNIQUE (environment_id, name)
);
CREATE INDEX run_views_by_environment ON run_views (environment_id, id);
