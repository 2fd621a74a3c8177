-- What each SDK instance numbered and what of it arrived, counted while events are stored. NULL: nothing was numbered.

ALTER TABLE runs ADD COLUMN recorders TEXT; -- JSON, as in storage/completeness.ts
ALTER TABLE runs ADD COLUMN has_gaps INTEGER NOT NULL DEFAULT 0;

CREATE INDEX runs_with_gaps ON runs (environment_id, started_at, id) WHERE has_gaps = 1;
CREATE INDEX runs_with_gaps_of_agent ON runs (environment_id, agent_id, started_at, id) WHERE has_gaps = 1;

-- Without it, a time range looks better in an index of all runs.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('runs', 'runs_with_gaps', '10000 10000 2 1'),
  ('runs', 'runs_with_gaps_of_agent', '10000 10000 200 2 1');
ANALYZE sqlite_schema; -- only loads these numbers
