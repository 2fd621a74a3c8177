-- Prompts, policies and what is in force. Control tables: operators write them, and they are few.

CREATE TABLE prompts (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  newest INTEGER NOT NULL, -- number of the newest version
  UNIQUE (workspace_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX prompts_by_workspace ON prompts (workspace_id, id);

-- The content is last: what stands before it is found without it.
CREATE TABLE prompt_versions (
  id TEXT NOT NULL UNIQUE,
  prompt_id TEXT NOT NULL REFERENCES prompts (id),
  number INTEGER NOT NULL,
  content_hash TEXT NOT NULL, -- SHA-256
  content_bytes INTEGER NOT NULL,
  author TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  note TEXT,
  content TEXT NOT NULL,
  UNIQUE (prompt_id, number)
) STRICT;

CREATE TABLE policies (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL, -- chosen by an operator
  created_at INTEGER NOT NULL,
  newest INTEGER NOT NULL, -- number of the newest version
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE policy_versions (
  workspace_id TEXT NOT NULL,
  policy_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  name TEXT NOT NULL,
  description TEXT,
  condition TEXT NOT NULL, -- as it was written
  severity TEXT NOT NULL,
  action TEXT NOT NULL,
  author TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  note TEXT,
  PRIMARY KEY (workspace_id, policy_id, number),
  FOREIGN KEY (workspace_id, policy_id) REFERENCES policies (workspace_id, id)
) STRICT;

-- What is in force.
CREATE TABLE deployments (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  kind TEXT NOT NULL, -- prompt, policy
  item_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  publication INTEGER NOT NULL,
  deployed_at INTEGER NOT NULL,
  deployed_by TEXT NOT NULL,
  PRIMARY KEY (environment_id, kind, item_id)
) STRICT, WITHOUT ROWID;

-- Every change of it. Changes of one publication came into force together.
CREATE TABLE deployment_changes (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  publication INTEGER NOT NULL,
  kind TEXT NOT NULL,
  item_id TEXT NOT NULL,
  action TEXT NOT NULL,
  from_version INTEGER,
  to_version INTEGER, -- null: taken out of force
  restores INTEGER, -- of a roll back: the publication that first put to_version in force
  at INTEGER NOT NULL,
  by_name TEXT NOT NULL,
  note TEXT,
  source_environment_id TEXT, -- of a promotion
  revision TEXT NOT NULL,
  PRIMARY KEY (environment_id, publication, kind, item_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deployment_changes_by_item ON deployment_changes (environment_id, kind, item_id, publication);

-- What clients get, computed when it is published. Its row is the environment's turn to publish.
CREATE TABLE configurations (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  publication INTEGER NOT NULL, -- how many there have been
  revision TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE TABLE simulations (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL REFERENCES environments (id),
  status TEXT NOT NULL,
  condition TEXT NOT NULL,
  severity TEXT NOT NULL,
  action TEXT NOT NULL,
  days INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  ended_at INTEGER,
  scanned INTEGER NOT NULL,
  total INTEGER,
  error TEXT,
  result TEXT -- JSON
) STRICT;
CREATE INDEX simulations_by_environment ON simulations (environment_id, id);

-- Tool calls of a time, over all runs: what simulations read. Other events pay nothing for it.
CREATE INDEX tool_calls_by_time ON events (environment_id, time) WHERE event_type = 'TOOL_CALL';
