-- Waiting runs by time. The primary key does not have this order, so no planner prefers it and reads all runs.
DROP INDEX search_runs_marked;
CREATE INDEX search_runs_marked ON search_runs (environment_id, marked_at, run) WHERE marked_at IS NOT NULL;
