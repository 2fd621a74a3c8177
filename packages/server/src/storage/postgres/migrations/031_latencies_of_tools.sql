-- Latencies of tool calls are in tool_hours alone. Calls from before it was there are moved to it, under no name.

INSERT INTO tool_hours (environment_id, hour, agent_id, tool_key, bucket, slot, calls, errors, blocked, approvals)
  SELECT l.environment_id, l.hour, l.agent_id, '', l.bucket, 0, l.calls - COALESCE(t.calls, 0), 0, 0, 0
  FROM (SELECT environment_id, hour, agent_id, bucket, SUM(calls) AS calls FROM latency_hours
    WHERE call = 'TOOL_CALL' GROUP BY environment_id, hour, agent_id, bucket) l
  LEFT JOIN (SELECT environment_id, hour, agent_id, bucket, SUM(calls) AS calls FROM tool_hours
    WHERE bucket >= 0 GROUP BY environment_id, hour, agent_id, bucket) t
    ON t.environment_id = l.environment_id AND t.hour = l.hour AND t.agent_id = l.agent_id AND t.bucket = l.bucket
  WHERE l.calls > COALESCE(t.calls, 0)
  ON CONFLICT (environment_id, hour, agent_id, tool_key, bucket, slot) DO UPDATE SET calls = tool_hours.calls + excluded.calls;

-- Those of model calls stay.
DELETE FROM latency_hours WHERE call = 'TOOL_CALL';
ALTER TABLE latency_hours DROP CONSTRAINT latency_hours_pkey;
ALTER TABLE latency_hours DROP COLUMN call;
ALTER TABLE latency_hours ADD CONSTRAINT latency_hours_pkey PRIMARY KEY (environment_id, hour, agent_id, model_key, bucket, slot);
