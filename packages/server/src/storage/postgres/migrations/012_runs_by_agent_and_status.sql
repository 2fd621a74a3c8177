-- The list of runs by agent and status. Without it, a page reads every run of the agent or every run with the status.

CREATE INDEX runs_by_agent_and_status ON runs (environment_id, agent_id, status, started_at, id);
