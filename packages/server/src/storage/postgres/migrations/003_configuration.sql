-- Prompts, policies and what is in force. Control tables: operators write them, and they are few.

CREATE TABLE prompts (
  id text COLLATE "C" PRIMARY KEY,
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  name text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  newest bigint NOT NULL, -- number of the newest version
  UNIQUE (workspace_id, name)
);
CREATE INDEX prompts_by_workspace ON prompts (workspace_id, id);

-- The content is last: what stands before it is found without it.
CREATE TABLE prompt_versions (
  id text COLLATE "C" NOT NULL UNIQUE,
  prompt_id text COLLATE "C" NOT NULL REFERENCES prompts (id),
  number bigint NOT NULL,
  content_hash text NOT NULL, -- SHA-256
  content_bytes bigint NOT NULL,
  author text NOT NULL,
  created_at bigint NOT NULL,
  note text,
  content text NOT NULL,
  UNIQUE (prompt_id, number)
);

CREATE TABLE policies (
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  id text COLLATE "C" NOT NULL, -- chosen by an operator
  created_at bigint NOT NULL,
  newest bigint NOT NULL, -- number of the newest version
  PRIMARY KEY (workspace_id, id)
);

CREATE TABLE policy_versions (
  workspace_id text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  description text,
  condition text NOT NULL, -- as it was written
  severity text NOT NULL,
  action text NOT NULL,
  author text NOT NULL,
  created_at bigint NOT NULL,
  note text,
  PRIMARY KEY (workspace_id, policy_id, number),
  FOREIGN KEY (workspace_id, policy_id) REFERENCES policies (workspace_id, id)
);

-- What is in force.
CREATE TABLE deployments (
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  kind text COLLATE "C" NOT NULL, -- prompt, policy
  item_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  publication bigint NOT NULL,
  deployed_at bigint NOT NULL,
  deployed_by text NOT NULL,
  PRIMARY KEY (environment_id, kind, item_id)
);

-- Every change of it. Changes of one publication came into force together.
CREATE TABLE deployment_changes (
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  publication bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  item_id text COLLATE "C" NOT NULL,
  action text NOT NULL,
  from_version bigint,
  to_version bigint, -- null: taken out of force
  restores bigint, -- of a roll back: the publication that first put to_version in force
  at bigint NOT NULL,
  by_name text NOT NULL,
  note text,
  source_environment_id text, -- of a promotion
  revision text NOT NULL,
  PRIMARY KEY (environment_id, publication, kind, item_id)
);
CREATE INDEX deployment_changes_by_item ON deployment_changes (environment_id, kind, item_id, publication);

-- What clients get, computed when it is published. Its row is the environment's turn to publish.
CREATE TABLE configurations (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  publication bigint NOT NULL, -- how many there have been
  revision text NOT NULL,
  body text NOT NULL
);

CREATE TABLE simulations (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  status text NOT NULL,
  condition text NOT NULL,
  severity text NOT NULL,
  action text NOT NULL,
  days bigint NOT NULL,
  created_at bigint NOT NULL,
  created_by text NOT NULL,
  ended_at bigint,
  scanned bigint NOT NULL,
  total bigint,
  error text,
  result text -- JSON
);
CREATE INDEX simulations_by_environment ON simulations (environment_id, id);

-- Tool calls of a time, over all runs: what simulations read. Other events pay nothing for it.
CREATE INDEX tool_calls_by_time ON events (environment_id, time, run_id, seq) WHERE event_type = 'TOOL_CALL';
