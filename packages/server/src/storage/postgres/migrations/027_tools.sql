-- Calls of tools by hour, counted from now on.

CREATE TABLE tools (
  environment_id uuid NOT NULL,
  tool_key text COLLATE "C" NOT NULL, -- SHA-256 of the name
  tool text COLLATE "C" NOT NULL,
  PRIMARY KEY (environment_id, tool_key)
);

CREATE TABLE tool_hours (
  environment_id uuid NOT NULL,
  hour bigint NOT NULL,
  agent_id uuid NOT NULL, -- the agent of the run
  tool_key text COLLATE "C" NOT NULL, -- '' for calls that do not name their tool
  bucket integer NOT NULL, -- four for each doubling of the latency; -1 without a latency
  slot integer NOT NULL, -- the node that wrote it
  calls bigint NOT NULL,
  errors bigint NOT NULL,
  blocked bigint NOT NULL, -- decisions of policies that blocked a call
  approvals bigint NOT NULL, -- decisions that held a call back for an approval
  PRIMARY KEY (environment_id, hour, agent_id, tool_key, bucket, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
