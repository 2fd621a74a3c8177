-- Calls of tools by hour, counted from now on.

CREATE TABLE tools (
  environment_id TEXT NOT NULL,
  tool_key TEXT NOT NULL, -- SHA-256 of the name
  tool TEXT NOT NULL,
  PRIMARY KEY (environment_id, tool_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE tool_hours (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  agent_id TEXT NOT NULL, -- the agent of the run
  tool_key TEXT NOT NULL, -- '' for calls that do not name their tool
  bucket INTEGER NOT NULL, -- four for each doubling of the latency; -1 without a latency
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  calls INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  blocked INTEGER NOT NULL, -- decisions of policies that blocked a call
  approvals INTEGER NOT NULL, -- decisions that held a call back for an approval
  PRIMARY KEY (environment_id, hour, agent_id, tool_key, bucket, slot)
) STRICT, WITHOUT ROWID;
