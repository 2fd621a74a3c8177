-- The list of runs by agent and status. Without it, a page reads every run of the agent: 1.4 seconds for a million.

CREATE INDEX runs_by_agent_and_status ON runs (environment_id, agent_id, status, started_at, id);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('runs', 'runs_by_agent_and_status', '1000000 1000000 20000 5000 2 1');
-- Open connections read the statistics again.
ANALYZE sqlite_schema;
