-- Everything lies in the schema that the connection names first. Times are milliseconds, flags 0 and 1, JSON is text, as
-- in the embedded engine. Texts whose order or equality matters have the collation "C": code points, as SQLite has it.

-- Control tables: everything that exists before a tenant's clients send anything. Small; on Citus they stay local.
-- Their ids are text: they are looked up by what people typed, and a uuid column would raise an error for most of it.

-- One row; its revision grows with every change to a tenant, key or token.
CREATE TABLE control (
  id smallint PRIMARY KEY CHECK (id = 1),
  revision bigint NOT NULL
) WITH (fillfactor = 50); -- room for versions of the row beside it, so that no index changes
INSERT INTO control (id, revision) VALUES (1, 0);

CREATE TABLE secrets (
  name text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE workspaces (
  id text COLLATE "C" PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  created_at bigint NOT NULL,
  archived_at bigint
);

CREATE TABLE environments (
  id text COLLATE "C" PRIMARY KEY,
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  name text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  archived_at bigint,
  delete_at bigint, -- when its data is deleted; NULL: nobody asked for it
  removed_at bigint, -- since then no reader finds it
  deletion text, -- JSON: who asked for it, and what has been deleted
  UNIQUE (workspace_id, name)
);
CREATE INDEX environments_by_workspace ON environments (workspace_id, id);

CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  name text NOT NULL,
  hash text NOT NULL,
  scopes text NOT NULL, -- JSON array
  requests_per_second integer,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint,
  replaced_by text COLLATE "C" -- id of the key that a rotation created
) WITH (fillfactor = 70);
CREATE INDEX api_keys_by_environment ON api_keys (environment_id, id);

CREATE TABLE operator_tokens (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  hash text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  last_used_at bigint,
  workspace_id text COLLATE "C" REFERENCES workspaces (id), -- null: every workspace
  role text NOT NULL DEFAULT 'owner'
) WITH (fillfactor = 70);
CREATE INDEX operator_tokens_by_workspace ON operator_tokens (workspace_id, id);

-- The processes that serve this store. A slot is free again when its heartbeat is old; times are the database's.
CREATE TABLE nodes (
  slot integer PRIMARY KEY,
  node_id text COLLATE "C" NOT NULL UNIQUE,
  started_at bigint NOT NULL,
  heartbeat_at bigint NOT NULL
) WITH (fillfactor = 50);

-- People: who they are, what they may do where, how they sign in.
CREATE TABLE operators (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  email text COLLATE "C" NOT NULL UNIQUE, -- in lower case
  email_verified smallint NOT NULL, -- whether an identity provider has vouched for it
  two_factor_enabled smallint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);

CREATE TABLE operator_roles (
  scope text COLLATE "C" NOT NULL, -- id of a workspace, or 'installation': every workspace
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  role text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (scope, operator_id)
);
CREATE INDEX operator_roles_by_operator ON operator_roles (operator_id, scope);

-- The link is not kept, only the SHA-256 of the text in it. One that ended is no longer pending and stays as a trace.
CREATE TABLE operator_invitations (
  id text COLLATE "C" PRIMARY KEY,
  hash text COLLATE "C" NOT NULL,
  email text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  invited_by text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  ended_at bigint, -- accepted, revoked or replaced by a newer one
  inviter_kind text, -- operator, token: the invitation ends with them; null: the service itself
  inviter_id text
);
CREATE INDEX operator_invitations_by_scope ON operator_invitations (scope, id) WHERE ended_at IS NULL;
CREATE INDEX operator_invitations_by_email ON operator_invitations (email, scope) WHERE ended_at IS NULL;

-- Ways in: a password, or an account at an identity provider.
CREATE TABLE operator_accounts (
  id text COLLATE "C" PRIMARY KEY,
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  provider_id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  password text, -- argon2id, in PHC form
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  UNIQUE (provider_id, account_id)
);
CREATE INDEX operator_accounts_by_operator ON operator_accounts (operator_id);

CREATE TABLE operator_sessions (
  id text COLLATE "C" PRIMARY KEY,
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  token_hash text COLLATE "C" NOT NULL UNIQUE, -- SHA-256 of the token in the cookie
  ip_address text,
  user_agent text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  last_used_at bigint
);
CREATE INDEX operator_sessions_by_operator ON operator_sessions (operator_id, id);
CREATE INDEX operator_sessions_by_expiry ON operator_sessions (expires_at);

CREATE TABLE operator_second_factors (
  id text COLLATE "C" PRIMARY KEY,
  operator_id text COLLATE "C" NOT NULL UNIQUE REFERENCES operators (id),
  secret text NOT NULL, -- encrypted
  recovery_codes text NOT NULL, -- encrypted
  verified smallint NOT NULL,
  failed_attempts integer NOT NULL DEFAULT 0,
  locked_until bigint
);

-- Sign-ins under way: what a second factor or an identity provider must answer.
CREATE TABLE sign_in_challenges (
  id text COLLATE "C" PRIMARY KEY,
  identifier text COLLATE "C" NOT NULL,
  value text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX sign_in_challenges_by_identifier ON sign_in_challenges (identifier, created_at);
CREATE INDEX sign_in_challenges_by_expiry ON sign_in_challenges (expires_at);

-- Rows are only added, with ids in order of time.
CREATE TABLE audit_log (
  id text COLLATE "C" PRIMARY KEY,
  workspace_id text COLLATE "C", -- null: the whole installation
  environment_id text COLLATE "C",
  at bigint NOT NULL,
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  actor_name text NOT NULL,
  action text NOT NULL,
  target_kind text NOT NULL,
  target_id text NOT NULL,
  detail text NOT NULL, -- JSON
  request_id text NOT NULL
);
CREATE INDEX audit_log_by_workspace ON audit_log (workspace_id, id);
-- The log of one workspace, and of all, by each of its filters. The filter comes first: a query without it must not
-- find these indexes, because PostgreSQL would sort a whole workspace while it has no statistics.
CREATE INDEX audit_log_by_action ON audit_log (action, workspace_id, id);
CREATE INDEX audit_log_by_actor ON audit_log (actor_id, workspace_id, id);
CREATE INDEX audit_log_by_target ON audit_log (target_id, workspace_id, id);
CREATE INDEX audit_log_by_target_kind ON audit_log (target_kind, workspace_id, id);
CREATE INDEX audit_log_everywhere_by_action ON audit_log (action, id);
CREATE INDEX audit_log_everywhere_by_actor ON audit_log (actor_id, id);
CREATE INDEX audit_log_everywhere_by_target ON audit_log (target_id, id);
CREATE INDEX audit_log_everywhere_by_target_kind ON audit_log (target_kind, id);
-- The oldest entries of an environment, and those of its workspace alone.
CREATE INDEX audit_log_by_environment ON audit_log (environment_id, id) WHERE environment_id IS NOT NULL;
CREATE INDEX audit_log_of_workspace ON audit_log (workspace_id, id) WHERE environment_id IS NULL;

-- The replies to operators who created something with an idempotency key, for a day.
CREATE TABLE idempotency_keys (
  actor_kind text COLLATE "C" NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL, -- SHA-256 hex of the request
  created_at bigint NOT NULL,
  state text COLLATE "C" NOT NULL,
  status integer,
  reply text, -- JSON object, without secrets
  PRIMARY KEY (actor_kind, actor_id, idempotency_key)
);
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

-- Work for the background, keyed by what is to be done. Rows come and go: vacuum often.
CREATE TABLE work (
  kind text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  environment_id text COLLATE "C" NOT NULL,
  due_at bigint NOT NULL, -- while it is held: when the lease ends
  attempts integer NOT NULL,
  lease_owner text, -- who holds it
  last_error text,
  PRIMARY KEY (environment_id, kind, subject_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX work_by_due ON work (kind, due_at, environment_id, subject_id);
-- Work is claimed in turn from the environments that have some.
CREATE INDEX work_by_environment ON work (kind, environment_id, due_at, subject_id);

-- Prompts, policies and the versions in force.

CREATE TABLE prompts (
  id text COLLATE "C" NOT NULL,
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  name text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  newest bigint NOT NULL, -- number of the newest version
  archived_at bigint,
  PRIMARY KEY (workspace_id, id),
  UNIQUE (workspace_id, name)
);

-- The content is last: what stands before it is found without it.
CREATE TABLE prompt_versions (
  workspace_id text COLLATE "C" NOT NULL,
  prompt_id text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  content_hash text NOT NULL, -- SHA-256
  content_bytes bigint NOT NULL,
  author text NOT NULL,
  created_at bigint NOT NULL,
  note text,
  content text NOT NULL,
  imported_at bigint, -- here and below: when an import brought the row, whose author is then the word of the file
  PRIMARY KEY (workspace_id, prompt_id, number),
  UNIQUE (workspace_id, id),
  FOREIGN KEY (workspace_id, prompt_id) REFERENCES prompts (workspace_id, id)
);

CREATE TABLE policies (
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  id text COLLATE "C" NOT NULL, -- chosen by an operator
  created_at bigint NOT NULL,
  newest bigint NOT NULL, -- number of the newest version
  archived_at bigint,
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
  imported_at bigint,
  PRIMARY KEY (workspace_id, policy_id, number),
  FOREIGN KEY (workspace_id, policy_id) REFERENCES policies (workspace_id, id)
);

-- The versions in force.
CREATE TABLE deployments (
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  kind text COLLATE "C" NOT NULL, -- prompt, policy
  item_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  publication bigint NOT NULL,
  deployed_at bigint NOT NULL,
  deployed_by text NOT NULL,
  imported_at bigint,
  PRIMARY KEY (environment_id, kind, item_id)
);

-- Every change of them. Changes of one publication came into force together.
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
  imported_at bigint,
  PRIMARY KEY (environment_id, publication, kind, item_id)
);
CREATE INDEX deployment_changes_by_item ON deployment_changes (environment_id, kind, item_id, publication);

-- The configuration that clients get, computed when it is published. A publication locks its row first.
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

-- Saved views of the list of runs.
CREATE TABLE run_views (
  id text COLLATE "C" NOT NULL,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  name text COLLATE "C" NOT NULL,
  query text NOT NULL, -- JSON object
  last_hours integer,
  columns text NOT NULL, -- JSON array
  created_at bigint NOT NULL,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, name)
);

-- Prices of a workspace, instead of those of the price table.
CREATE TABLE prices (
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  model text COLLATE "C" NOT NULL,
  rates text NOT NULL, -- JSON object
  changed_at bigint NOT NULL,
  PRIMARY KEY (workspace_id, model)
);

-- When a run of an environment counts as stalled. Without a row: the default, and such runs stay open.
CREATE TABLE stalled_rules (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  idle_minutes integer NOT NULL,
  close_as text -- FAILED, CANCELLED; null: stalled runs stay open
);

-- How long an environment keeps things. environment_id '': what the other environments of the workspace follow.
CREATE TABLE retention_settings (
  workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces (id),
  environment_id text COLLATE "C" NOT NULL,
  run_days integer, -- null: for ever; so are the next
  payload_days integer,
  issue_days integer,
  approval_days integer,
  audit_days integer,
  keep_open_issue_runs integer NOT NULL,
  PRIMARY KEY (workspace_id, environment_id)
);

-- The results of retention in an environment.
CREATE TABLE retention_progress (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  pass_started_at bigint NOT NULL,
  pass_ended_at bigint, -- null: the pass is not at its end
  last_slice_at bigint,
  reached_at bigint, -- runs that started before were examined in this pass
  pass text NOT NULL, -- JSON object: what this pass removed
  total text NOT NULL -- the same of all passes
) WITH (fillfactor = 50);

-- Alerts and budgets. Each has a row in the work queue.
CREATE TABLE alerts (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  rule text NOT NULL, -- JSON object
  state text NOT NULL, -- JSON object
  checked_at bigint,
  created_at bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX alerts_by_environment ON alerts (environment_id, id);

-- Operators write these. The messages that they cause are bounded.
CREATE TABLE webhooks (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  url text NOT NULL,
  description text NOT NULL,
  format text NOT NULL,
  events text NOT NULL, -- JSON array
  secret text NOT NULL, -- needed as it is, to sign
  previous_secret text,
  previous_until bigint, -- until when messages are signed with the previous secret too
  signing_secret text, -- of the Slack app, to verify its requests
  shows_input integer NOT NULL DEFAULT 0, -- 1: messages about requests have the beginning of the recorded input
  created_at bigint NOT NULL,
  disabled_at bigint,
  disabled_reason text,
  dropped_deliveries bigint NOT NULL DEFAULT 0
);
CREATE INDEX webhooks_by_environment ON webhooks (environment_id, id);

-- Slack users. Without an operator: one who got a code, of which only the SHA-256 is kept.
CREATE TABLE slack_links (
  id text COLLATE "C" PRIMARY KEY,
  environment_id text COLLATE "C" NOT NULL,
  webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id),
  team_id text COLLATE "C" NOT NULL,
  team_name text NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  user_name text NOT NULL,
  operator_id text COLLATE "C" REFERENCES operators (id), -- as whom the Slack user decides
  code_hash text COLLATE "C",
  code_expires_at bigint, -- null: the person confirmed it
  changed_at bigint NOT NULL, -- when the code was made, or the person confirmed
  UNIQUE (environment_id, webhook_id, team_id, user_id)
);
CREATE INDEX slack_links_by_webhook ON slack_links (environment_id, webhook_id, id);
CREATE INDEX slack_links_by_operator ON slack_links (operator_id, id) WHERE operator_id IS NOT NULL;
CREATE INDEX slack_links_by_expiry ON slack_links (code_expires_at) WHERE code_expires_at IS NOT NULL;

-- Browsers that show a person's notifications. They leave with their session.
CREATE TABLE notified_browsers (
  id text COLLATE "C" PRIMARY KEY,
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  session_id text COLLATE "C" NOT NULL, -- the last that opened it; it may have expired
  endpoint text NOT NULL, -- address at the push service
  endpoint_hash text COLLATE "C" NOT NULL UNIQUE, -- SHA-256
  public_key text NOT NULL,
  auth_secret text NOT NULL, -- needed as it is, to encrypt
  user_agent text NOT NULL,
  added_at bigint NOT NULL,
  opened_at bigint NOT NULL,
  notified_at bigint
);
CREATE INDEX notified_browsers_by_operator ON notified_browsers (operator_id, id);
CREATE INDEX notified_browsers_by_opening ON notified_browsers (opened_at);

CREATE TABLE notification_choices (
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  kinds text NOT NULL, -- JSON array
  severity text NOT NULL, -- the least that is told
  PRIMARY KEY (environment_id, operator_id)
);
CREATE INDEX notification_choices_by_operator ON notification_choices (operator_id, environment_id);

CREATE TABLE quiet_hours (
  operator_id text COLLATE "C" PRIMARY KEY REFERENCES operators (id),
  from_minute integer NOT NULL, -- of the day
  to_minute integer NOT NULL,
  time_zone text NOT NULL,
  except_critical integer NOT NULL -- boolean
);

-- Messages, for each webhook on its own. The newest of each are kept.
CREATE TABLE webhook_deliveries (
  webhook_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  environment_id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  status text COLLATE "C" NOT NULL,
  attempts integer NOT NULL,
  created_at bigint NOT NULL,
  last_attempt_at bigint,
  next_attempt_at bigint,
  response_status integer,
  error text,
  data text NOT NULL, -- JSON object
  PRIMARY KEY (webhook_id, id)
) WITH (fillfactor = 70); -- each row is written again at every attempt
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (status, environment_id, webhook_id, id);

-- Environments where the search over payload text is on.
CREATE TABLE search_settings (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  state text NOT NULL, -- ON, REMOVING
  changed_at bigint NOT NULL,
  older_before bigint, -- runs that start earlier are not yet queued; null: all are
  older_id text COLLATE "C", -- with older_before: the last run that was queued
  indexed_events bigint NOT NULL,
  error text
);

-- The import that began in an environment.
CREATE TABLE imports (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  source text NOT NULL, -- SHA-256 of the first line of the export
  started_at bigint NOT NULL,
  logged_at bigint NOT NULL, -- of its newest audit entry
  logged_by text NOT NULL
);

-- A change of the approvals of an environment takes its row first, so changes are committed in the order of their
-- revisions, and a reader that follows them misses none.
CREATE TABLE approval_feeds (
  environment_id text COLLATE "C" PRIMARY KEY,
  revision bigint NOT NULL,
  next_deadline bigint, -- no pending approval expires before it; NULL: none is pending
  removed_revision bigint NOT NULL DEFAULT 0 -- at which approvals were last removed, so that streams and polls read again
) WITH (fillfactor = 50);
CREATE INDEX approval_feeds_by_deadline ON approval_feeds (next_deadline) WHERE next_deadline IS NOT NULL;

-- Data tables: every primary and unique key starts with the environment, the column that Citus distributes them by. No
-- foreign keys: they would cost a look-up per row, and a writer holds the row of the run. uuid rather than text
-- saves 21 bytes in the row and in each entry of each index.
CREATE TABLE agents (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  agent_key text COLLATE "C" NOT NULL, -- SHA-256 of the key space and the external id, or else the name
  external_id text,
  name text COLLATE "C" NOT NULL, -- the newest by event time
  name_time bigint NOT NULL,
  archived_at bigint, -- hidden until a run starts later
  display_name text, -- shown instead of the reported name
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, agent_key)
) WITH (fillfactor = 80);

-- Models that have a bucket of their own in usage_hours.
CREATE TABLE models (
  environment_id uuid NOT NULL,
  model_key text COLLATE "C" NOT NULL, -- SHA-256 of model
  model text COLLATE "C" NOT NULL,
  PRIMARY KEY (environment_id, model_key)
);

CREATE TABLE tools (
  environment_id uuid NOT NULL,
  tool_key text COLLATE "C" NOT NULL, -- SHA-256 of the name
  tool text COLLATE "C" NOT NULL,
  PRIMARY KEY (environment_id, tool_key)
);

-- Numbers of runs and of envelopes, unique in the store. Each node takes a thousand at once.
CREATE SEQUENCE numbers INCREMENT BY 1000;

-- The texts that the events of one agent in one client repeat. Sessions are not part of it: there are as many as runs.
CREATE TABLE envelopes (
  environment_id uuid NOT NULL,
  number bigint NOT NULL,
  envelope_key text COLLATE "C" NOT NULL, -- SHA-256 of the other columns
  client_id text NOT NULL,
  agent_id text, -- external id, as sent
  agent_name text NOT NULL,
  schema_version text,
  PRIMARY KEY (environment_id, number),
  UNIQUE (environment_id, envelope_key)
);

-- Updated by nearly every batch. None of the columns that change with every event is in an index, and half of each page
-- is left free, so that an update stays in its page and touches no index (HOT). Dead versions are pruned in passing.
CREATE TABLE runs (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  agent_id uuid NOT NULL,
  started_at bigint NOT NULL,
  last_event_at bigint NOT NULL,
  received_at bigint NOT NULL,
  event_count bigint NOT NULL,
  differing_retries bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  total_tokens bigint NOT NULL,
  cost_nanos bigint NOT NULL,
  last_seq bigint NOT NULL, -- the largest seq of its events
  ended_at bigint,
  closing_seq bigint, -- seq of the event that closed the run
  run_id text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  session_key text COLLATE "C", -- SHA-256 of session_id
  session_id text,
  number bigint NOT NULL, -- what its events name it by
  error_count bigint NOT NULL, -- as `traits`, counted while events are stored, to filter the list of runs
  traits text NOT NULL, -- lines of tools, models, policies and prompt versions
  rule_closed_at bigint, -- when the stalled rule of the environment closed it
  pinned_at bigint, -- null: not pinned
  payloads_removed bigint NOT NULL DEFAULT 0, -- events of the run without their payloads
  uncosted text, -- JSON: tokens of calls without a cost, by model and length of context
  packed integer NOT NULL DEFAULT 0, -- 1: no payload waits to be packed
  blocks integer NOT NULL DEFAULT 0, -- counts the blocks ever made; it never falls
  recorders text, -- JSON: what each SDK instance numbered, and what of it arrived (storage/completeness.ts); NULL: nothing
  has_gaps integer NOT NULL DEFAULT 0,
  -- Why it failed: storage/failure.ts. The message is content: it goes with the payloads.
  failure text,
  failure_message text,
  said text, -- JSON: its title and its last answer (storage/said.ts), which go with the payloads too
  -- What lists of runs are sorted by (storage/sql/runs/ranked-runs.ts). Null until the run ends, so that no index changes before.
  ranked_cost bigint GENERATED ALWAYS AS (CASE WHEN ended_at IS NOT NULL THEN NULLIF(cost_nanos, 0) END) STORED,
  ranked_length bigint GENERATED ALWAYS AS (CASE WHEN ended_at IS NOT NULL THEN NULLIF(ended_at - started_at, 0) END) STORED,
  ranked_tokens bigint GENERATED ALWAYS AS (CASE WHEN ended_at IS NOT NULL THEN NULLIF(total_tokens, 0) END) STORED,
  ranked_failures bigint GENERATED ALWAYS AS (CASE WHEN ended_at IS NOT NULL THEN NULLIF(error_count, 0) END) STORED,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, run_id)
) WITH (
  fillfactor = 50,
  -- Vacuum comes by rows, not by a share of a table that may be huge.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02
);
CREATE INDEX runs_by_start ON runs (environment_id, started_at, id);
CREATE INDEX runs_by_agent ON runs (environment_id, agent_id, started_at, id);
CREATE INDEX runs_by_status ON runs (environment_id, status, started_at, id);
CREATE INDEX runs_by_session ON runs (environment_id, session_key, started_at, id) WHERE session_key IS NOT NULL;
CREATE UNIQUE INDEX runs_by_number ON runs (environment_id, number);
-- The list of runs by agent and status. Without it, a page reads every run of the agent or every run with the status.
CREATE INDEX runs_by_agent_and_status ON runs (environment_id, agent_id, status, started_at, id);
CREATE INDEX runs_unpacked ON runs (environment_id, number) WHERE packed = 0;
CREATE INDEX runs_with_gaps ON runs (environment_id, started_at, id) WHERE has_gaps = 1;
CREATE INDEX runs_with_gaps_of_agent ON runs (environment_id, agent_id, started_at, id) WHERE has_gaps = 1;
-- In the interface, runs that the stalled rule closed are RUNNING: its list finds them here.
CREATE INDEX runs_by_rule ON runs (environment_id, started_at, id) WHERE rule_closed_at IS NOT NULL;
CREATE INDEX runs_ranked_by_cost ON runs (environment_id, ranked_cost, id) WHERE ranked_cost IS NOT NULL;
CREATE INDEX runs_ranked_by_length ON runs (environment_id, ranked_length, id) WHERE ranked_length IS NOT NULL;
CREATE INDEX runs_ranked_by_tokens ON runs (environment_id, ranked_tokens, id) WHERE ranked_tokens IS NOT NULL;
CREATE INDEX runs_ranked_by_failures ON runs (environment_id, ranked_failures, id) WHERE ranked_failures IS NOT NULL;

-- Rows are only added, so pages are filled. seq is the arrival order within the run, given out under the lock of the
-- run's row: a smaller seq is never committed later, so a reader that follows it misses nothing. The payload is last:
-- what stands before it is found without it.
CREATE TABLE events (
  environment_id uuid NOT NULL,
  run bigint NOT NULL, -- number of the run
  time bigint NOT NULL,
  received_at bigint NOT NULL,
  envelope bigint NOT NULL, -- number of the envelope
  seq integer NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  event_type text NOT NULL,
  label text NOT NULL,
  own_session text, -- NULL: the session of the run; '': none; else '=' and the session
  span_id text,
  parent_span_id text,
  payload text NOT NULL,
  latency_us bigint, -- NULL: its payload does not say so
  problem text, -- what a person should look at: error, blocked, approval; NULL: nothing
  tokens bigint, -- of a model call, in total; NULL: none
  cost_nanos bigint, -- of a model call, as sent; NULL: none
  -- Payloads of idle runs lie in compressed blocks (storage/sql/payloads.ts): a row says where. Until then these are null.
  payload_bytes integer,
  block integer,
  block_at integer, -- first byte in the block
  payload_sum integer, -- CRC-32 of the payload, wherever it lies, as a signed number; null: it was removed
  PRIMARY KEY (environment_id, run, event_id)
) WITH (
  -- Freeze while rows are few and in memory, not all of them in one go two billion transactions later.
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 1000000,
  autovacuum_analyze_scale_factor = 0.05,
  -- Retention deletes old events in bulk. Vacuum gives their space back for new ones after two in a hundred rows, not
  -- after twenty, so the table does not grow while it is emptied.
  autovacuum_vacuum_scale_factor = 0.02
);
-- It has everything that timelines select by, in their order, so no other index can seem better. By arrival, seqs are
-- found in it without the rows.
CREATE INDEX events_by_time ON events (environment_id, run, time, seq);
-- The problems of a run, however long it is: they are few.
CREATE INDEX problems_by_time ON events (environment_id, run, time, seq) WHERE problem IS NOT NULL;
-- Tool calls of a time, over all runs, for simulations.
CREATE INDEX tool_calls_by_time ON events (environment_id, time, run, seq) WHERE event_type = 'TOOL_CALL';
-- For erasures. Events of a session that is not the one of their run are rare. Texts may be longer than an index row, so
-- some are found by their MD5.
CREATE INDEX events_of_other_sessions ON events (environment_id, md5(own_session)) WHERE own_session > '=';

-- Assumptions for plans, whatever a sample says. A run belongs to one environment. Otherwise PostgreSQL multiplies the
-- odds of both and expects one row per run, and every index of them looks equally good for a single event. Runs have many
-- events and environments many runs, because a bad plan hurts the large ones.
CREATE STATISTICS events_of_run (dependencies) ON environment_id, run FROM events;
ALTER TABLE events ALTER COLUMN run SET (n_distinct = -0.02);
ALTER TABLE runs ALTER COLUMN environment_id SET (n_distinct = 100);

-- LZ4 packs as well as the older method in a fraction of the time; not every build of PostgreSQL has it.
DO $$
BEGIN
  IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
    ALTER TABLE events ALTER COLUMN payload SET COMPRESSION lz4;
  END IF;
END $$;

CREATE TABLE payload_blocks (
  environment_id uuid NOT NULL,
  run bigint NOT NULL, -- number of the run
  block integer NOT NULL,
  packed bytea NOT NULL, -- a Brotli stream
  PRIMARY KEY (environment_id, run, block)
);
ALTER TABLE payload_blocks ALTER COLUMN packed SET STORAGE EXTERNAL; -- it is compressed already

-- A few rows take every update of a tenant: as runs, and each writer has rows of its own.
CREATE TABLE usage_hours (
  environment_id uuid NOT NULL,
  hour bigint NOT NULL,
  agent_id uuid NOT NULL,
  events bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  total_tokens bigint NOT NULL,
  cost_nanos bigint NOT NULL,
  slot integer NOT NULL, -- who wrote it: a lane of a node
  model_key text COLLATE "C" NOT NULL, -- '' for events without a model
  runs bigint NOT NULL DEFAULT 0, -- that start in this hour, in rows without a model
  completed bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  cancelled bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE latency_hours (
  environment_id uuid NOT NULL,
  hour bigint NOT NULL,
  agent_id uuid NOT NULL,
  model_key text COLLATE "C" NOT NULL, -- '' for calls without a model
  bucket integer NOT NULL, -- four for each doubling of the latency
  slot integer NOT NULL, -- the node that wrote it
  calls bigint NOT NULL,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, bucket, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

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

CREATE TABLE uncosted_hours (
  environment_id uuid NOT NULL,
  hour bigint NOT NULL,
  agent_id uuid NOT NULL,
  model_key text COLLATE "C" NOT NULL, -- '' for calls without a model
  context integer NOT NULL, -- the threshold that the input of the calls exceeds
  slot integer NOT NULL, -- the node that wrote it
  calls bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cache_read_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  cache_write_1h_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, context, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE version_runs (
  environment_id uuid NOT NULL,
  prompt_version_id uuid NOT NULL, -- as events name it
  run uuid NOT NULL, -- internal id of the run
  first_at bigint NOT NULL,
  events bigint NOT NULL,
  errors bigint NOT NULL,
  blocked bigint NOT NULL,
  approvals bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  total_tokens bigint NOT NULL,
  cost_nanos bigint NOT NULL,
  PRIMARY KEY (environment_id, prompt_version_id, run)
) WITH (fillfactor = 80);
CREATE INDEX version_runs_by_time ON version_runs (environment_id, first_at);
CREATE INDEX version_runs_by_run ON version_runs (environment_id, run);

CREATE TABLE version_latencies (
  environment_id uuid NOT NULL,
  hour bigint NOT NULL,
  prompt_version_id uuid NOT NULL, -- as events name it
  call text COLLATE "C" NOT NULL, -- LLM_CALL, TOOL_CALL
  bucket integer NOT NULL, -- four for each doubling of the latency
  slot integer NOT NULL, -- the node that wrote it
  calls bigint NOT NULL,
  PRIMARY KEY (environment_id, hour, prompt_version_id, call, bucket, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX version_latencies_by_version ON version_latencies (environment_id, prompt_version_id, hour);

-- What people, users and programs say of a run or of one of its steps: the latest of each name, step and author.
CREATE TABLE scores (
  environment_id uuid NOT NULL,
  run uuid NOT NULL, -- internal id of the run
  id text COLLATE "C" NOT NULL, -- SHA-256 of run, step, name and author
  event_id text COLLATE "C", -- the step, as clients name it; NULL: the run
  name text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL, -- NUMBER, BOOLEAN, CATEGORY
  number double precision, -- of a boolean 0 or 1; NULL: a category
  category text COLLATE "C",
  author_kind text COLLATE "C" NOT NULL, -- client, operator, token
  author_id text COLLATE "C" NOT NULL, -- of a client: whom it names, or ''
  author_name text NOT NULL,
  scored_at bigint NOT NULL,
  sent_as text COLLATE "C", -- event id of the SCORE event; NULL: an operator gave it
  imported_at bigint,
  comment text, -- content: it goes with the payloads. Last: sums read the columns before it
  PRIMARY KEY (environment_id, run, id)
);

-- What the scores of one name say of a run. They change together, under the lock of the run's row.
CREATE TABLE run_scores (
  environment_id uuid NOT NULL,
  name text COLLATE "C" NOT NULL,
  run uuid NOT NULL, -- internal id of the run
  kind text COLLATE "C" NOT NULL, -- of the latest
  number double precision, -- the mean; NULL: all are categories
  category text COLLATE "C", -- the latest
  scores bigint NOT NULL,
  scored_at bigint NOT NULL, -- when the latest was given
  sent_as text COLLATE "C", -- of the latest: the event id of the SCORE event; NULL: an operator gave it
  numbers bigint NOT NULL, -- how many scores are no categories
  sum text NOT NULL, -- theirs, exactly: a JSON list of numbers to add
  PRIMARY KEY (environment_id, name, run)
);
CREATE INDEX run_scores_by_run ON run_scores (environment_id, run, name);
CREATE INDEX run_scores_by_number ON run_scores (environment_id, name, number, run) WHERE number IS NOT NULL;
CREATE INDEX run_scores_by_time ON run_scores (environment_id, scored_at);

-- The revision of the runtime configuration that each client has, written once a minute.
CREATE TABLE configuration_clients (
  environment_id uuid NOT NULL,
  identified_by text COLLATE "C" NOT NULL, -- client, key
  client_id text COLLATE "C" NOT NULL, -- what the client calls itself, or the id of its key
  key_id text COLLATE "C" NOT NULL,
  revision text COLLATE "C" NOT NULL,
  seen_at bigint NOT NULL,
  PRIMARY KEY (environment_id, identified_by, client_id)
) WITH (fillfactor = 50);
CREATE INDEX configuration_clients_by_time ON configuration_clients (environment_id, seen_at);

-- Refused events, the newest of each environment, so that people can be told why.
CREATE TABLE rejections (
  environment_id uuid NOT NULL,
  rejected_at bigint NOT NULL,
  rejection_key text COLLATE "C" NOT NULL, -- SHA-256 of run id and event id
  code text NOT NULL,
  PRIMARY KEY (environment_id, rejection_key)
);
CREATE INDEX rejections_by_age ON rejections (environment_id, rejected_at);

-- The reports of clients. A decided one is an occurrence, or a recovery, of the issue that its fingerprint belongs to.
CREATE TABLE issue_records (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  prompt_version_id uuid,
  detected_at bigint NOT NULL,
  seen_at bigint NOT NULL, -- detected_at, but never after it was received
  received_at bigint NOT NULL,
  status_at bigint NOT NULL,
  record_key text COLLATE "C" NOT NULL, -- SHA-256 of sdk_instance_id and client_record_id
  record_kind text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C",
  sdk_instance_id text NOT NULL,
  client_record_id text NOT NULL,
  detection_type text NOT NULL,
  run_id text COLLATE "C", -- external, as sent
  session_id text,
  event_id text COLLATE "C",
  agent_id text NOT NULL, -- external, as sent
  policy_id text,
  failure text,
  payload text NOT NULL,
  evidence text NOT NULL,
  origin text NOT NULL DEFAULT 'CLIENT', -- CLIENT; SERVICE: it made the record of a failure in recorded events
  same_as uuid, -- the record of the service that counts the failure that this one reports
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, record_key)
) WITH (fillfactor = 80);
CREATE INDEX issue_records_by_status ON issue_records (environment_id, status, id);
CREATE INDEX issue_records_by_fingerprint ON issue_records (environment_id, fingerprint, record_kind, seen_at, id)
  WHERE fingerprint IS NOT NULL;
CREATE INDEX issue_records_by_kind ON issue_records (environment_id, record_kind, id);
CREATE INDEX issue_records_by_run ON issue_records (environment_id, md5(run_id)) WHERE run_id IS NOT NULL;
CREATE INDEX issue_records_by_session ON issue_records (environment_id, md5(session_id)) WHERE session_id IS NOT NULL;
CREATE INDEX issue_records_by_agent ON issue_records (environment_id, md5(agent_id));
CREATE INDEX issue_records_by_client ON issue_records (environment_id, md5(sdk_instance_id));

CREATE TABLE issues (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  merged_into uuid, -- never an issue that is merged itself
  state_at bigint NOT NULL,
  opened_at bigint NOT NULL,
  first_seen bigint NOT NULL,
  last_seen bigint NOT NULL,
  occurrences bigint NOT NULL,
  recoveries bigint NOT NULL,
  runs bigint NOT NULL,
  agents bigint NOT NULL,
  regressions bigint NOT NULL,
  last_regression_at bigint,
  state text COLLATE "C" NOT NULL,
  state_by text, -- JSON: who gave it this state; null for the service
  title text NOT NULL,
  detection_type text COLLATE "C" NOT NULL,
  assignee text COLLATE "C",
  ignored_until bigint, -- when it opens again by itself; null: not
  PRIMARY KEY (environment_id, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX issues_by_last_seen ON issues (environment_id, last_seen, id) WHERE merged_into IS NULL;
CREATE INDEX issues_by_state ON issues (environment_id, state, last_seen, id) WHERE merged_into IS NULL;
CREATE INDEX issues_by_target ON issues (environment_id, merged_into, id) WHERE merged_into IS NOT NULL;
CREATE INDEX issues_by_assignee ON issues (environment_id, assignee, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NOT NULL;
CREATE INDEX issues_assigned ON issues (environment_id, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NOT NULL;
CREATE INDEX issues_unassigned ON issues (environment_id, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NULL;

-- Each set of facts once; its numbers are those of the records that have it.
CREATE TABLE issue_fingerprints (
  environment_id uuid NOT NULL,
  issue_id uuid, -- where it belongs now; null until something was detected
  home_issue_id uuid, -- where it belonged before that one was merged
  first_seen bigint,
  last_seen bigint,
  occurrences bigint NOT NULL,
  recoveries bigint NOT NULL,
  runs bigint NOT NULL,
  agents bigint NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  detection_type text COLLATE "C" NOT NULL,
  title text NOT NULL,
  facts text NOT NULL, -- canonical JSON
  PRIMARY KEY (environment_id, fingerprint)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX issue_fingerprints_by_issue ON issue_fingerprints (environment_id, issue_id, fingerprint);
CREATE INDEX issue_fingerprints_by_type ON issue_fingerprints (environment_id, detection_type, issue_id);

-- The runs and agents in which something was detected.
CREATE TABLE issue_affected (
  environment_id uuid NOT NULL,
  occurrences bigint NOT NULL,
  first_seen bigint NOT NULL,
  last_seen bigint NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL, -- 'run' or 'agent'
  subject_key text COLLATE "C" NOT NULL, -- SHA-256; of an agent the same as in agents
  subject text NOT NULL, -- external id
  PRIMARY KEY (environment_id, fingerprint, kind, subject_key)
) WITH (fillfactor = 80);
CREATE INDEX issue_affected_by_last_seen ON issue_affected (environment_id, fingerprint, kind, last_seen, subject_key);
CREATE INDEX issue_affected_by_subject ON issue_affected (environment_id, kind, subject_key, fingerprint);

-- Comments, and what happened to an issue.
CREATE TABLE issue_activity (
  environment_id uuid NOT NULL,
  issue_id uuid NOT NULL,
  id uuid NOT NULL,
  at bigint NOT NULL,
  kind text NOT NULL,
  actor text, -- JSON; null for the service
  text text,
  detail text NOT NULL, -- JSON object
  imported_at bigint,
  PRIMARY KEY (environment_id, issue_id, at, id)
);

CREATE TABLE approvals (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  revision bigint NOT NULL, -- of the environment, at the last change of this row
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  timeout_ms bigint NOT NULL,
  decided_at bigint,
  status text COLLATE "C" NOT NULL,
  request_key text COLLATE "C" NOT NULL, -- SHA-256 of client_id and client_request_id
  input_hash text COLLATE "C" NOT NULL,
  tool_key text COLLATE "C" NOT NULL, -- SHA-256 of tool_name; so are the other keys of their texts
  agent_key text COLLATE "C" NOT NULL, -- of the agent, or else of the client
  policy_key text COLLATE "C",
  run_key text COLLATE "C",
  client_id text NOT NULL,
  client_request_id text NOT NULL,
  run_id text, -- external
  session_id text,
  agent_id text,
  policy_id text,
  tool_name text NOT NULL,
  decision_reason text,
  decider_kind text,
  decider_id text,
  decider_name text,
  decided_via text, -- slack; null: the operator API
  reason text,
  imported_at bigint,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, request_key)
);
CREATE INDEX approvals_by_revision ON approvals (environment_id, revision, id);
CREATE INDEX approvals_by_time ON approvals (environment_id, created_at, id);
CREATE INDEX approvals_by_status ON approvals (environment_id, status, created_at, id);
CREATE INDEX approvals_by_tool ON approvals (environment_id, tool_key, created_at, id);
CREATE INDEX approvals_by_agent ON approvals (environment_id, agent_key, created_at, id);
CREATE INDEX approvals_by_policy ON approvals (environment_id, policy_key, created_at, id) WHERE policy_key IS NOT NULL;
CREATE INDEX approvals_by_run ON approvals (environment_id, run_key, created_at, id) WHERE run_key IS NOT NULL;
CREATE INDEX approvals_pending ON approvals (environment_id, expires_at, id) WHERE status = 'PENDING';
CREATE INDEX approvals_pending_by_tool ON approvals (environment_id, tool_key, input_hash, expires_at, id)
  WHERE status = 'PENDING';
CREATE INDEX approvals_by_session ON approvals (environment_id, md5(session_id)) WHERE session_id IS NOT NULL;
CREATE INDEX approvals_by_client ON approvals (environment_id, md5(client_id));
CREATE INDEX approvals_by_named_agent ON approvals (environment_id, md5(agent_id)) WHERE agent_id IS NOT NULL;

-- No reader sees these runs. Their events are deleted in slices; the row goes with the last one.
CREATE TABLE removed_runs (
  environment_id uuid NOT NULL,
  number bigint NOT NULL, -- what its events name it by
  id uuid NOT NULL,
  erasure_id uuid, -- NULL: removed for another reason
  events bigint NOT NULL, -- not yet deleted
  removed_at bigint NOT NULL,
  PRIMARY KEY (environment_id, number)
);
CREATE INDEX removed_runs_by_erasure ON removed_runs (environment_id, erasure_id, number);

CREATE TABLE erasures (
  environment_id uuid NOT NULL,
  id uuid NOT NULL,
  kind text COLLATE "C" NOT NULL,
  subject text, -- NULL once everything is deleted
  subject_hash text COLLATE "C" NOT NULL, -- SHA-256 of the id of the erasure and the subject
  field text, -- where in payloads a user id stands
  status text COLLATE "C" NOT NULL,
  requested_by text NOT NULL, -- JSON
  reason text,
  created_at bigint NOT NULL,
  effective_at bigint,
  finished_at bigint,
  searched_to bigint NOT NULL, -- runs up to this number have been searched
  searched bigint NOT NULL,
  to_search bigint NOT NULL,
  runs bigint NOT NULL,
  events bigint NOT NULL,
  events_deleted bigint NOT NULL,
  approvals bigint NOT NULL,
  issue_records bigint NOT NULL,
  issues bigint NOT NULL,
  checksum text COLLATE "C" NOT NULL,
  PRIMARY KEY (environment_id, id)
) WITH (fillfactor = 50);

-- Events that name one of these, with a time up to `until`, are refused.
CREATE TABLE erased_keys (
  environment_id uuid NOT NULL,
  erased_key text COLLATE "C" NOT NULL, -- SHA-256 of the kind and the id
  until bigint NOT NULL,
  PRIMARY KEY (environment_id, erased_key)
);
CREATE INDEX erased_keys_by_time ON erased_keys (environment_id, until);

-- Grows with every erasure, so that appends look only where something was erased, and forget what they cache of it.
CREATE TABLE erasure_revisions (
  environment_id uuid NOT NULL PRIMARY KEY,
  revision bigint NOT NULL
) WITH (fillfactor = 50);

-- The search over payload text: how far the events of each run are indexed.
CREATE TABLE search_runs (
  environment_id uuid NOT NULL,
  run bigint NOT NULL, -- number of the run
  id uuid NOT NULL, -- internal id of the run
  indexed_seq bigint NOT NULL,
  marks bigint NOT NULL, -- how often events were added
  marked_at bigint, -- since when events wait; null: all are indexed
  PRIMARY KEY (environment_id, run)
) WITH (fillfactor = 70);
CREATE INDEX search_runs_marked ON search_runs (environment_id, marked_at, run) WHERE marked_at IS NOT NULL;

-- Indexed events, with hashes of their words. A hash includes the environment and the hour of the event.
CREATE TABLE search_entries (
  environment_id uuid NOT NULL,
  run bigint NOT NULL, -- number of the run
  seq bigint NOT NULL,
  time bigint NOT NULL,
  words integer[] NOT NULL,
  PRIMARY KEY (environment_id, run, seq)
);
CREATE INDEX search_entries_by_words ON search_entries USING gin (words) WITH (gin_pending_list_limit = 256);
