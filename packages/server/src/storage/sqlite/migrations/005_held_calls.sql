-- Calls that a policy held back or blocked, over all runs, for simulations. They are few.
CREATE INDEX held_calls_by_time ON events (environment_id, time, problem)
  WHERE event_type = 'POLICY_DECISION' AND problem IS NOT NULL;
