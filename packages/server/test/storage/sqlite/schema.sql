CREATE TABLE agents (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  agent_key TEXT NOT NULL, -- SHA-256 of the key space and the external id, or else the name
  external_id TEXT,
  name TEXT NOT NULL, -- the newest by event time
  name_time INTEGER NOT NULL,
  archived_at INTEGER, -- hidden until a run starts later
  display_name TEXT, -- shown instead of the reported name
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, agent_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE alerts (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL REFERENCES environments (id),
  rule TEXT NOT NULL, -- JSON object
  state TEXT NOT NULL, -- JSON object
  checked_at INTEGER,
  created_at INTEGER NOT NULL
, row_sum INTEGER) STRICT, WITHOUT ROWID;

CREATE INDEX alerts_by_environment ON alerts (environment_id, id);

CREATE TABLE api_keys (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL REFERENCES environments (id),
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  scopes TEXT NOT NULL, -- JSON array
  requests_per_second INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER,
  replaced_by TEXT -- id of the key that a rotation created
, family TEXT, lost_requests INTEGER NOT NULL DEFAULT 0, last_lost_at INTEGER, last_lost_reason TEXT, row_sum INTEGER, allowed_addresses TEXT, spool_trouble TEXT, spool_trouble_at INTEGER, creator_kind TEXT, creator_id TEXT) STRICT, WITHOUT ROWID;

CREATE INDEX api_keys_by_environment ON api_keys (environment_id, id);

CREATE TABLE approval_feeds (
  environment_id TEXT NOT NULL PRIMARY KEY,
  revision INTEGER NOT NULL,
  next_deadline INTEGER, -- no pending approval expires before it; NULL: none is pending
  removed_revision INTEGER NOT NULL DEFAULT 0 -- at which approvals were last removed, so that streams and polls read again
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_feeds_by_deadline ON approval_feeds (next_deadline) WHERE next_deadline IS NOT NULL;

CREATE TABLE approval_grants (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  approval_id TEXT NOT NULL, -- with which it was given
  scope TEXT NOT NULL, -- input, tool: of the run; condition: of the agent
  tool_key TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  key_family TEXT NOT NULL, -- of the API key that asked
  run_id TEXT,
  agent_id TEXT,
  input_hash TEXT,
  condition TEXT,
  policies TEXT NOT NULL, -- JSON: the versions in force
  reason TEXT,
  most_uses INTEGER NOT NULL,
  uses INTEGER NOT NULL DEFAULT 0,
  last_used_at INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  granter_kind TEXT NOT NULL,
  granter_id TEXT NOT NULL,
  granter_name TEXT NOT NULL,
  ended_at INTEGER, -- revoked, or a policy of it changed
  ended_by TEXT, -- name of who revoked it; null: a policy changed
  PRIMARY KEY (environment_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_grants_by_approval ON approval_grants (environment_id, approval_id);

CREATE INDEX approval_grants_by_expiry ON approval_grants (expires_at) WHERE ended_at IS NULL;

CREATE INDEX approval_grants_in_use ON approval_grants (environment_id, tool_key) WHERE ended_at IS NULL;

CREATE TABLE approvals (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  request_key TEXT NOT NULL, -- SHA-256 of client_id and client_request_id
  revision INTEGER NOT NULL, -- of the environment, at the last change of this row
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  timeout_ms INTEGER NOT NULL,
  input_hash TEXT NOT NULL,
  tool_key TEXT NOT NULL, -- SHA-256 of tool_name; so are the other keys of their texts
  agent_key TEXT NOT NULL, -- of the agent, or else of the client
  policy_key TEXT,
  run_key TEXT,
  client_id TEXT NOT NULL,
  client_request_id TEXT NOT NULL,
  run_id TEXT, -- external
  session_id TEXT,
  agent_id TEXT,
  policy_id TEXT,
  tool_name TEXT NOT NULL,
  decided_at INTEGER,
  decision_reason TEXT,
  decider_kind TEXT,
  decider_id TEXT,
  decider_name TEXT,
  decided_via TEXT, -- slack; null: the operator API
  reason TEXT,
  imported_at INTEGER, key_family TEXT, tool_call_id TEXT, policy_version TEXT, records_input INTEGER, hash_scheme TEXT, input_event_id TEXT, withdrawn_at INTEGER, withdrawn_reason TEXT, ran_at INTEGER, ran_status TEXT, last_seen_at INTEGER, approvers INTEGER, first_approval TEXT, policy_versions TEXT, grant_id TEXT, held_until INTEGER,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, request_key)
) STRICT;

CREATE INDEX approvals_by_agent ON approvals (environment_id, agent_key, created_at, id);

CREATE INDEX approvals_by_client ON approvals (environment_id, client_id);

CREATE INDEX approvals_by_named_agent ON approvals (environment_id, agent_id) WHERE agent_id IS NOT NULL;

CREATE INDEX approvals_by_policy ON approvals (environment_id, policy_key, created_at, id) WHERE policy_key IS NOT NULL;

CREATE INDEX approvals_by_revision ON approvals (environment_id, revision, id);

CREATE INDEX approvals_by_run ON approvals (environment_id, run_key, created_at, id) WHERE run_key IS NOT NULL;

CREATE INDEX approvals_by_session ON approvals (environment_id, session_id) WHERE session_id IS NOT NULL;

CREATE INDEX approvals_by_status ON approvals (environment_id, status, created_at, id);

CREATE INDEX approvals_by_time ON approvals (environment_id, created_at, id);

CREATE INDEX approvals_by_tool ON approvals (environment_id, tool_key, created_at, id);

CREATE INDEX approvals_pending ON approvals (environment_id, expires_at, id) WHERE status = 'PENDING';

CREATE INDEX approvals_pending_by_tool ON approvals (environment_id, tool_key, input_hash, expires_at, id)
  WHERE status = 'PENDING';

CREATE INDEX approvals_that_ran ON approvals (environment_id, run_key, input_hash, ran_at) WHERE ran_at IS NOT NULL;

CREATE TABLE audit_log (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT, -- null: the whole installation
  environment_id TEXT,
  at INTEGER NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  actor_name TEXT NOT NULL,
  action TEXT NOT NULL,
  target_kind TEXT NOT NULL,
  target_id TEXT NOT NULL,
  detail TEXT NOT NULL, -- JSON
  request_id TEXT NOT NULL
, address TEXT) STRICT, WITHOUT ROWID;

CREATE INDEX audit_log_by_action ON audit_log (action, workspace_id, id);

CREATE INDEX audit_log_by_actor ON audit_log (actor_id, workspace_id, id);

CREATE INDEX audit_log_by_environment ON audit_log (environment_id, id) WHERE environment_id IS NOT NULL;

CREATE INDEX audit_log_by_target ON audit_log (target_id, workspace_id, id);

CREATE INDEX audit_log_by_target_kind ON audit_log (target_kind, workspace_id, id);

CREATE INDEX audit_log_by_workspace ON audit_log (workspace_id, id);

CREATE INDEX audit_log_everywhere_by_action ON audit_log (action, id);

CREATE INDEX audit_log_everywhere_by_actor ON audit_log (actor_id, id);

CREATE INDEX audit_log_everywhere_by_target ON audit_log (target_id, id);

CREATE INDEX audit_log_everywhere_by_target_kind ON audit_log (target_kind, id);

CREATE INDEX audit_log_of_workspace ON audit_log (workspace_id, id) WHERE environment_id IS NULL;

CREATE TABLE configuration_clients (
  environment_id TEXT NOT NULL,
  identified_by TEXT NOT NULL, -- client, key
  client_id TEXT NOT NULL, -- what the client calls itself, or the id of its key
  key_id TEXT NOT NULL,
  revision TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, identified_by, client_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX configuration_clients_by_time ON configuration_clients (environment_id, seen_at);

CREATE TABLE configurations (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  publication INTEGER NOT NULL, -- how many there have been
  revision TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE TABLE control (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  revision INTEGER NOT NULL
) STRICT;

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
  imported_at INTEGER, share_version INTEGER, share_percent INTEGER,
  PRIMARY KEY (environment_id, publication, kind, item_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX deployment_changes_by_item ON deployment_changes (environment_id, kind, item_id, publication);

CREATE TABLE deployments (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  kind TEXT NOT NULL, -- prompt, policy
  item_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  publication INTEGER NOT NULL,
  deployed_at INTEGER NOT NULL,
  deployed_by TEXT NOT NULL,
  imported_at INTEGER, row_sum INTEGER,
  PRIMARY KEY (environment_id, kind, item_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE directory_groups (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL UNIQUE, -- in lower case
  external_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX directory_groups_by_external_id ON directory_groups (external_id);

CREATE TABLE directory_members (
  group_id TEXT NOT NULL REFERENCES directory_groups (id),
  operator_id TEXT NOT NULL REFERENCES operators (id),
  PRIMARY KEY (group_id, operator_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX directory_members_by_operator ON directory_members (operator_id, group_id);

CREATE TABLE directory_people (
  operator_id TEXT NOT NULL PRIMARY KEY REFERENCES operators (id),
  user_name TEXT NOT NULL,
  user_key TEXT NOT NULL UNIQUE, -- in lower case
  external_id TEXT,
  active INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX directory_people_by_external_id ON directory_people (external_id);

CREATE TABLE ended_operators (
  email_key TEXT NOT NULL PRIMARY KEY, -- SHA-256 of the address
  ended_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE envelopes (
  number INTEGER PRIMARY KEY,
  environment_id TEXT NOT NULL,
  envelope_key TEXT NOT NULL, -- SHA-256 of the other columns
  client_id TEXT NOT NULL,
  agent_id TEXT, -- external id, as sent
  agent_name TEXT NOT NULL,
  schema_version TEXT,
  UNIQUE (environment_id, envelope_key)
) STRICT;

CREATE TABLE environment_numbers (
  number INTEGER PRIMARY KEY,
  environment_id TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE environments (
  id TEXT NOT NULL PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  archived_at INTEGER,
  delete_at INTEGER, -- when its data is deleted; NULL: nobody asked for it
  removed_at INTEGER, -- since then no reader finds it
  deletion TEXT, -- JSON: who asked for it, and what has been deleted
  UNIQUE (workspace_id, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX environments_by_workspace ON environments (workspace_id, id);

CREATE TABLE erased_keys (
  environment_id TEXT NOT NULL,
  erased_key TEXT NOT NULL, -- SHA-256 of the kind and the id
  until INTEGER NOT NULL,
  PRIMARY KEY (environment_id, erased_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX erased_keys_by_time ON erased_keys (environment_id, until);

CREATE TABLE erasure_revisions (
  environment_id TEXT NOT NULL PRIMARY KEY,
  revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE erasures (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT, -- NULL once everything is deleted
  subject_hash TEXT NOT NULL, -- SHA-256 of the id of the erasure and the subject
  field TEXT, -- where in payloads a user id stands
  status TEXT NOT NULL,
  requested_by TEXT NOT NULL, -- JSON
  reason TEXT,
  created_at INTEGER NOT NULL,
  effective_at INTEGER,
  finished_at INTEGER,
  searched_to INTEGER NOT NULL, -- runs up to this number have been searched
  searched INTEGER NOT NULL,
  to_search INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  events INTEGER NOT NULL,
  events_deleted INTEGER NOT NULL,
  approvals INTEGER NOT NULL,
  issue_records INTEGER NOT NULL,
  issues INTEGER NOT NULL,
  checksum TEXT NOT NULL, running_runs INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (environment_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  environment_id INTEGER NOT NULL, -- number of the environment
  run INTEGER NOT NULL, -- number of the run
  envelope INTEGER NOT NULL, -- number of the envelope
  time INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  label TEXT NOT NULL,
  own_session TEXT, -- NULL: the session of the run; '': none; else '=' and the session
  span_id TEXT,
  parent_span_id TEXT,
  latency_us INTEGER, -- NULL: its payload does not say so
  problem TEXT, -- what a person should look at: error, blocked, approval; NULL: nothing
  tokens INTEGER, -- of a model call, in total; NULL: none
  cost_nanos INTEGER, -- of a model call, as sent; NULL: none
  -- Payloads of idle runs lie in compressed blocks (storage/sql/payloads.ts): a row says where. Until then these are null.
  payload_bytes INTEGER,
  block INTEGER,
  block_at INTEGER, -- first byte in the block
  payload_sum INTEGER, -- CRC-32 of the payload, wherever it lies, as a signed number; null: it was removed
  payload TEXT NOT NULL, counted TEXT,
  UNIQUE (environment_id, run, event_id)
) STRICT;

CREATE INDEX events_by_time ON events (run, time);

CREATE INDEX events_of_other_sessions ON events (environment_id, own_session) WHERE own_session > '=';

CREATE INDEX held_calls_by_time ON events (environment_id, time, problem)
  WHERE event_type = 'POLICY_DECISION' AND problem IS NOT NULL;

CREATE TABLE idempotency_keys (
  actor_kind TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL, -- SHA-256 hex of the request
  created_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  status INTEGER,
  reply TEXT, -- JSON object, without secrets
  PRIMARY KEY (actor_kind, actor_id, idempotency_key)
) STRICT;

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

CREATE TABLE imports (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  source TEXT NOT NULL, -- SHA-256 of the first line of the export
  started_at INTEGER NOT NULL,
  logged_at INTEGER NOT NULL, -- of its newest audit entry
  logged_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE issue_activity (
  environment_id TEXT NOT NULL,
  issue_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  actor TEXT, -- JSON; NULL for the service
  text TEXT,
  detail TEXT NOT NULL, -- JSON object
  imported_at INTEGER,
  PRIMARY KEY (environment_id, issue_id, at, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE issue_affected (
  environment_id TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  kind TEXT NOT NULL, -- 'run' or 'agent'
  subject_key TEXT NOT NULL, -- SHA-256; of an agent the same as in agents
  subject TEXT NOT NULL, -- external id
  occurrences INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  PRIMARY KEY (environment_id, fingerprint, kind, subject_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX issue_affected_by_last_seen ON issue_affected (environment_id, fingerprint, kind, last_seen, subject_key);

CREATE INDEX issue_affected_by_subject ON issue_affected (environment_id, kind, subject_key, fingerprint);

CREATE TABLE issue_fingerprints (
  environment_id TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  issue_id TEXT, -- where it belongs now; NULL until something was detected
  home_issue_id TEXT, -- where it belonged before that one was merged
  detection_type TEXT NOT NULL,
  title TEXT NOT NULL,
  facts TEXT NOT NULL, -- canonical JSON
  first_seen INTEGER,
  last_seen INTEGER,
  occurrences INTEGER NOT NULL,
  recoveries INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  agents INTEGER NOT NULL,
  PRIMARY KEY (environment_id, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE INDEX issue_fingerprints_by_issue ON issue_fingerprints (environment_id, issue_id, fingerprint);

CREATE INDEX issue_fingerprints_by_type ON issue_fingerprints (environment_id, detection_type, issue_id);

CREATE TABLE issue_records (
  seq INTEGER PRIMARY KEY,
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  record_key TEXT NOT NULL, -- SHA-256 of sdk_instance_id and client_record_id
  sdk_instance_id TEXT NOT NULL,
  client_record_id TEXT NOT NULL,
  record_kind TEXT NOT NULL,
  detection_type TEXT NOT NULL,
  run_id TEXT, -- external, as sent
  session_id TEXT,
  event_id TEXT,
  agent_id TEXT NOT NULL, -- external, as sent
  policy_id TEXT,
  prompt_version_id TEXT,
  detected_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL, -- detected_at, but never after it was received
  received_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  status_at INTEGER NOT NULL,
  failure TEXT,
  fingerprint TEXT,
  payload TEXT NOT NULL,
  evidence TEXT NOT NULL,
  origin TEXT NOT NULL DEFAULT 'CLIENT', -- CLIENT; SERVICE: it made the record of a failure in recorded events
  same_as TEXT, -- the record of the service that counts the failure that this one reports
  UNIQUE (environment_id, id),
  UNIQUE (environment_id, record_key)
) STRICT;

CREATE INDEX issue_records_by_agent ON issue_records (environment_id, agent_id);

CREATE INDEX issue_records_by_client ON issue_records (environment_id, sdk_instance_id);

CREATE INDEX issue_records_by_fingerprint ON issue_records (environment_id, fingerprint, record_kind, seen_at, id)
  WHERE fingerprint IS NOT NULL;

CREATE INDEX issue_records_by_kind ON issue_records (environment_id, record_kind, id);

CREATE INDEX issue_records_by_run ON issue_records (environment_id, run_id) WHERE run_id IS NOT NULL;

CREATE INDEX issue_records_by_session ON issue_records (environment_id, session_id) WHERE session_id IS NOT NULL;

CREATE INDEX issue_records_by_status ON issue_records (environment_id, status, id);

CREATE TABLE issues (
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  title TEXT NOT NULL,
  detection_type TEXT NOT NULL,
  state TEXT NOT NULL,
  state_at INTEGER NOT NULL,
  state_by TEXT, -- JSON: who gave it this state; NULL for the service
  opened_at INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  occurrences INTEGER NOT NULL,
  recoveries INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  agents INTEGER NOT NULL,
  regressions INTEGER NOT NULL,
  last_regression_at INTEGER,
  assignee TEXT,
  merged_into TEXT, -- never an issue that is merged itself
  ignored_until INTEGER, -- when it opens again by itself; null: not
  PRIMARY KEY (environment_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX issues_assigned ON issues (environment_id, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NOT NULL;

CREATE INDEX issues_by_assignee ON issues (environment_id, assignee, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NOT NULL;

CREATE INDEX issues_by_first_seen ON issues (environment_id, first_seen, id) WHERE merged_into IS NULL;

CREATE INDEX issues_by_last_seen ON issues (environment_id, last_seen, id) WHERE merged_into IS NULL;

CREATE INDEX issues_by_state ON issues (environment_id, state, last_seen, id) WHERE merged_into IS NULL;

CREATE INDEX issues_by_target ON issues (environment_id, merged_into, id) WHERE merged_into IS NOT NULL;

CREATE INDEX issues_unassigned ON issues (environment_id, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NULL;

CREATE TABLE latency_hours (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  model_key TEXT NOT NULL, -- '' for calls without a model
  bucket INTEGER NOT NULL, -- four for each doubling of the latency
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  calls INTEGER NOT NULL,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, bucket, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at INTEGER NOT NULL
  ) STRICT;

CREATE TABLE models (
  environment_id TEXT NOT NULL,
  model_key TEXT NOT NULL, -- SHA-256 of model
  model TEXT NOT NULL,
  PRIMARY KEY (environment_id, model_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE notification_choices (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  operator_id TEXT NOT NULL REFERENCES operators (id),
  kinds TEXT NOT NULL, -- JSON array
  severity TEXT NOT NULL, -- the least that is told
  PRIMARY KEY (environment_id, operator_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX notification_choices_by_operator ON notification_choices (operator_id, environment_id);

CREATE TABLE notified_browsers (
  id TEXT NOT NULL PRIMARY KEY,
  operator_id TEXT NOT NULL REFERENCES operators (id),
  session_id TEXT NOT NULL, -- the last that opened it; it may have expired
  endpoint TEXT NOT NULL, -- address at the push service
  endpoint_hash TEXT NOT NULL UNIQUE, -- SHA-256
  public_key TEXT NOT NULL,
  auth_secret TEXT NOT NULL, -- needed as it is, to encrypt
  user_agent TEXT NOT NULL,
  added_at INTEGER NOT NULL,
  opened_at INTEGER NOT NULL,
  notified_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX notified_browsers_by_opening ON notified_browsers (opened_at);

CREATE INDEX notified_browsers_by_operator ON notified_browsers (operator_id, id);

CREATE TABLE operator_accounts (
  id TEXT NOT NULL PRIMARY KEY,
  operator_id TEXT NOT NULL REFERENCES operators (id),
  provider_id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  password TEXT, -- argon2id, in PHC form
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (provider_id, account_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX operator_accounts_by_operator ON operator_accounts (operator_id);

CREATE TABLE operator_invitations (
  id TEXT NOT NULL PRIMARY KEY,
  hash TEXT NOT NULL,
  email TEXT NOT NULL,
  scope TEXT NOT NULL,
  role TEXT NOT NULL,
  invited_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at INTEGER, -- accepted, revoked or replaced by a newer one
  inviter_kind TEXT, -- operator, token: the invitation ends with them; null: the service itself
  inviter_id TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX operator_invitations_by_email ON operator_invitations (email, scope) WHERE ended_at IS NULL;

CREATE INDEX operator_invitations_by_scope ON operator_invitations (scope, id) WHERE ended_at IS NULL;

CREATE TABLE operator_roles (
  scope TEXT NOT NULL, -- id of a workspace, or 'installation': every workspace
  operator_id TEXT NOT NULL REFERENCES operators (id),
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL, from_groups INTEGER NOT NULL DEFAULT 0, hand_role TEXT, row_sum INTEGER,
  PRIMARY KEY (scope, operator_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX operator_roles_by_operator ON operator_roles (operator_id, scope);

CREATE TABLE operator_second_factors (
  id TEXT NOT NULL PRIMARY KEY,
  operator_id TEXT NOT NULL UNIQUE REFERENCES operators (id),
  secret TEXT NOT NULL, -- encrypted
  recovery_codes TEXT NOT NULL, -- encrypted
  verified INTEGER NOT NULL,
  failed_attempts INTEGER NOT NULL DEFAULT 0,
  locked_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE operator_sessions (
  id TEXT NOT NULL PRIMARY KEY,
  operator_id TEXT NOT NULL REFERENCES operators (id),
  token_hash TEXT NOT NULL UNIQUE, -- SHA-256 of the token in the cookie
  ip_address TEXT,
  user_agent TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX operator_sessions_by_expiry ON operator_sessions (expires_at);

CREATE INDEX operator_sessions_by_operator ON operator_sessions (operator_id, id);

CREATE TABLE operator_tokens (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER,
  workspace_id TEXT REFERENCES workspaces (id), -- null: every workspace
  role TEXT NOT NULL DEFAULT 'owner'
, row_sum INTEGER, allowed_addresses TEXT, creator_kind TEXT, creator_id TEXT, creator_name TEXT, replaced_by TEXT) STRICT, WITHOUT ROWID;

CREATE INDEX operator_tokens_by_creator ON operator_tokens (creator_id);

CREATE INDEX operator_tokens_by_workspace ON operator_tokens (workspace_id, id);

CREATE TABLE operators (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE, -- in lower case
  email_verified INTEGER NOT NULL, -- whether an identity provider has vouched for it
  two_factor_enabled INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE payload_blocks (
  environment_id TEXT NOT NULL,
  run INTEGER NOT NULL, -- number of the run
  block INTEGER NOT NULL,
  packed BLOB NOT NULL, -- a Brotli stream
  PRIMARY KEY (environment_id, run, block)
) STRICT;

CREATE TABLE policies (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL, -- chosen by an operator
  created_at INTEGER NOT NULL,
  newest INTEGER NOT NULL, -- number of the newest version
  archived_at INTEGER,
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
  imported_at INTEGER, on_error TEXT, row_sum INTEGER, approvers INTEGER, grants TEXT, template TEXT,
  PRIMARY KEY (workspace_id, policy_id, number),
  FOREIGN KEY (workspace_id, policy_id) REFERENCES policies (workspace_id, id)
) STRICT;

CREATE TABLE prices (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  model TEXT NOT NULL,
  rates TEXT NOT NULL, -- JSON object
  changed_at INTEGER NOT NULL, row_sum INTEGER,
  PRIMARY KEY (workspace_id, model)
) STRICT, WITHOUT ROWID;

CREATE INDEX problems_by_time ON events (run, time) WHERE problem IS NOT NULL;

CREATE TABLE prompt_shares (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  prompt_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  percent INTEGER NOT NULL,
  salt TEXT NOT NULL, -- of the hash that decides; a new one for each share, so that other sessions come first
  started_at INTEGER NOT NULL,
  started_by TEXT NOT NULL,
  imported_at INTEGER,
  row_sum INTEGER,
  PRIMARY KEY (environment_id, prompt_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE prompt_versions (
  workspace_id TEXT NOT NULL,
  prompt_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  id TEXT NOT NULL,
  content_hash TEXT NOT NULL, -- SHA-256
  content_bytes INTEGER NOT NULL,
  author TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  note TEXT,
  content TEXT NOT NULL,
  imported_at INTEGER, row_sum INTEGER, -- here and below: when an import brought the row, whose author is then the word of the file
  PRIMARY KEY (workspace_id, prompt_id, number),
  UNIQUE (workspace_id, id),
  FOREIGN KEY (workspace_id, prompt_id) REFERENCES prompts (workspace_id, id)
) STRICT;

CREATE TABLE prompts (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  newest INTEGER NOT NULL, -- number of the newest version
  archived_at INTEGER,
  PRIMARY KEY (workspace_id, id),
  UNIQUE (workspace_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE quiet_hours (
  operator_id TEXT NOT NULL PRIMARY KEY REFERENCES operators (id),
  from_minute INTEGER NOT NULL, -- of the day
  to_minute INTEGER NOT NULL,
  time_zone TEXT NOT NULL,
  except_critical INTEGER NOT NULL -- boolean
) STRICT, WITHOUT ROWID;

CREATE TABLE rejections (
  environment_id TEXT NOT NULL,
  rejection_key TEXT NOT NULL, -- SHA-256 of run id and event id
  code TEXT NOT NULL,
  rejected_at INTEGER NOT NULL, message TEXT,
  PRIMARY KEY (environment_id, rejection_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX rejections_by_age ON rejections (environment_id, rejected_at);

CREATE TABLE removed_runs (
  environment_id TEXT NOT NULL,
  number INTEGER NOT NULL, -- what its events name it by
  id TEXT NOT NULL,
  erasure_id TEXT, -- NULL: removed for another reason
  events INTEGER NOT NULL, -- not yet deleted
  removed_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX removed_runs_by_erasure ON removed_runs (environment_id, erasure_id, number);

CREATE INDEX removed_runs_by_number ON removed_runs (number);

CREATE TABLE retention_progress (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  pass_started_at INTEGER NOT NULL,
  pass_ended_at INTEGER, -- null: the pass is not at its end
  last_slice_at INTEGER,
  reached_at INTEGER, -- runs that started before were examined in this pass
  pass TEXT NOT NULL, -- JSON object: what this pass removed
  total TEXT NOT NULL -- the same of all passes
) STRICT, WITHOUT ROWID;

CREATE TABLE retention_settings (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  environment_id TEXT NOT NULL,
  run_days INTEGER, -- null: for ever; so are the next
  payload_days INTEGER,
  issue_days INTEGER,
  approval_days INTEGER,
  audit_days INTEGER,
  keep_open_issue_runs INTEGER NOT NULL, row_sum INTEGER,
  PRIMARY KEY (workspace_id, environment_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_scores (
  environment_id TEXT NOT NULL,
  name TEXT NOT NULL,
  run TEXT NOT NULL, -- internal id of the run
  kind TEXT NOT NULL, -- of the latest
  number REAL, -- the mean; NULL: all are categories
  category TEXT, -- the latest
  scores INTEGER NOT NULL,
  scored_at INTEGER NOT NULL, -- when the latest was given
  sent_as TEXT, -- of the latest: the event id of the SCORE event; NULL: an operator gave it
  numbers INTEGER NOT NULL, -- how many scores are no categories
  sum TEXT NOT NULL, -- theirs, exactly: a JSON list of numbers to add
  PRIMARY KEY (environment_id, name, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_scores_by_number ON run_scores (environment_id, name, number, run) WHERE number IS NOT NULL;

CREATE INDEX run_scores_by_run ON run_scores (environment_id, run, name);

CREATE INDEX run_scores_by_time ON run_scores (environment_id, scored_at);

CREATE TABLE run_views (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  query TEXT NOT NULL, -- JSON object
  last_hours INTEGER,
  columns TEXT NOT NULL, -- JSON array
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  number INTEGER PRIMARY KEY, -- what its events name it by
  environment_id TEXT NOT NULL,
  id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  status TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  session_key TEXT, -- SHA-256 of session_id
  last_event_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  event_count INTEGER NOT NULL,
  differing_retries INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_nanos INTEGER NOT NULL,
  ended_at INTEGER,
  closing_seq INTEGER, -- seq of the event that closed the run
  session_id TEXT, -- the first that an event names; it never changes
  error_count INTEGER NOT NULL, -- as `traits`, counted while events are stored, to filter the list of runs
  traits TEXT NOT NULL, -- lines of tools, models, policies and prompt versions
  rule_closed_at INTEGER, -- when the stalled rule of the environment closed it
  pinned_at INTEGER, -- null: not pinned
  payloads_removed INTEGER NOT NULL DEFAULT 0, -- events of the run without their payloads
  uncosted TEXT, -- JSON: tokens of calls without a cost, by model and length of context
  packed INTEGER NOT NULL DEFAULT 0, -- 1: no payload waits to be packed
  blocks INTEGER NOT NULL DEFAULT 0, -- counts the blocks ever made; it never falls
  recorders TEXT, -- JSON: what each SDK instance numbered, and what of it arrived (storage/completeness.ts); NULL: nothing
  has_gaps INTEGER NOT NULL DEFAULT 0,
  -- Why it failed: storage/failure.ts. The message is content: it goes with the payloads.
  failure TEXT,
  failure_message TEXT,
  said TEXT, -- JSON: its title and its last answer (storage/said.ts), which go with the payloads too
  -- What lists of runs are sorted by (storage/sql/runs/ranked-runs.ts). Null until the run ends, so that no index changes before.
  ranked_cost INTEGER GENERATED ALWAYS AS (CASE WHEN ended_at IS NOT NULL THEN NULLIF(cost_nanos, 0) END) VIRTUAL,
  ranked_length INTEGER GENERATED ALWAYS AS (CASE WHEN ended_at IS NOT NULL THEN NULLIF(ended_at - started_at, 0) END) VIRTUAL,
  ranked_tokens INTEGER GENERATED ALWAYS AS (CASE WHEN ended_at IS NOT NULL THEN NULLIF(total_tokens, 0) END) VIRTUAL,
  ranked_failures INTEGER GENERATED ALWAYS AS (CASE WHEN ended_at IS NOT NULL THEN NULLIF(error_count, 0) END) VIRTUAL, user_id TEXT, user_key TEXT, recent_calls TEXT,
  UNIQUE (environment_id, id),
  UNIQUE (environment_id, run_id)
) STRICT;

CREATE INDEX runs_by_agent ON runs (environment_id, agent_id, started_at, id);

CREATE INDEX runs_by_agent_and_status ON runs (environment_id, agent_id, status, started_at, id);

CREATE INDEX runs_by_rule ON runs (environment_id, started_at, id) WHERE rule_closed_at IS NOT NULL;

CREATE INDEX runs_by_session ON runs (environment_id, session_key, started_at, id) WHERE session_key IS NOT NULL;

CREATE INDEX runs_by_start ON runs (environment_id, started_at, id);

CREATE INDEX runs_by_status ON runs (environment_id, status, started_at, id);

CREATE INDEX runs_by_user ON runs (environment_id, user_key, started_at, id) WHERE user_key IS NOT NULL;

CREATE INDEX runs_ranked_by_cost ON runs (environment_id, ranked_cost, id) WHERE ranked_cost IS NOT NULL;

CREATE INDEX runs_ranked_by_failures ON runs (environment_id, ranked_failures, id) WHERE ranked_failures IS NOT NULL;

CREATE INDEX runs_ranked_by_length ON runs (environment_id, ranked_length, id) WHERE ranked_length IS NOT NULL;

CREATE INDEX runs_ranked_by_tokens ON runs (environment_id, ranked_tokens, id) WHERE ranked_tokens IS NOT NULL;

CREATE INDEX runs_unpacked ON runs (environment_id, number) WHERE packed = 0;

CREATE INDEX runs_with_gaps ON runs (environment_id, started_at, id) WHERE has_gaps = 1;

CREATE INDEX runs_with_gaps_of_agent ON runs (environment_id, agent_id, started_at, id) WHERE has_gaps = 1;

CREATE TABLE scores (
  environment_id TEXT NOT NULL,
  run TEXT NOT NULL, -- internal id of the run
  id TEXT NOT NULL, -- SHA-256 of run, step, name and author
  event_id TEXT, -- the step, as clients name it; NULL: the run
  name TEXT NOT NULL,
  kind TEXT NOT NULL, -- NUMBER, BOOLEAN, CATEGORY
  number REAL, -- of a boolean 0 or 1; NULL: a category
  category TEXT,
  author_kind TEXT NOT NULL, -- client, operator, token
  author_id TEXT NOT NULL, -- of a client: whom it names, or ''
  author_name TEXT NOT NULL,
  scored_at INTEGER NOT NULL,
  sent_as TEXT, -- event id of the SCORE event; NULL: an operator gave it
  imported_at INTEGER,
  comment TEXT, -- content: it goes with the payloads. Last: sums read the columns before it
  PRIMARY KEY (environment_id, run, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE search_entries (
  place INTEGER PRIMARY KEY,
  environment_id TEXT NOT NULL,
  run INTEGER NOT NULL, -- number of the run
  seq INTEGER NOT NULL
) STRICT;

CREATE INDEX search_entries_by_run ON search_entries (environment_id, run);

CREATE TRIGGER search_entries_removed AFTER DELETE ON search_entries BEGIN
  DELETE FROM search_words WHERE rowid = old.place;
END;

CREATE TABLE search_runs (
  environment_id TEXT NOT NULL,
  run INTEGER NOT NULL, -- number of the run
  id TEXT NOT NULL, -- internal id of the run
  indexed_seq INTEGER NOT NULL,
  marks INTEGER NOT NULL, -- how often events were added
  marked_at INTEGER, -- since when events wait; null: all are indexed
  PRIMARY KEY (environment_id, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX search_runs_marked ON search_runs (environment_id, marked_at, run) WHERE marked_at IS NOT NULL;

CREATE TABLE search_settings (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  state TEXT NOT NULL, -- ON, REMOVING
  changed_at INTEGER NOT NULL,
  older_before INTEGER, -- runs that start earlier are not yet queued; null: all are
  older_id TEXT, -- with older_before: the last run that was queued
  indexed_events INTEGER NOT NULL,
  error TEXT
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE search_words USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

CREATE TABLE 'search_words_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE 'search_words_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'search_words_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);

CREATE TABLE 'search_words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE secrets (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sign_in_challenges (
  id TEXT NOT NULL PRIMARY KEY,
  identifier TEXT NOT NULL,
  value TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_challenges_by_expiry ON sign_in_challenges (expires_at);

CREATE INDEX sign_in_challenges_by_identifier ON sign_in_challenges (identifier, created_at);

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
, on_error TEXT, tool_labels TEXT, flow TEXT) STRICT;

CREATE INDEX simulations_by_environment ON simulations (environment_id, id);

CREATE TABLE slack_links (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL,
  webhook_id TEXT NOT NULL REFERENCES webhooks (id),
  team_id TEXT NOT NULL,
  team_name TEXT NOT NULL,
  user_id TEXT NOT NULL,
  user_name TEXT NOT NULL,
  operator_id TEXT REFERENCES operators (id), -- as whom the Slack user decides
  code_hash TEXT,
  code_expires_at INTEGER, -- null: the person confirmed it
  changed_at INTEGER NOT NULL, -- when the code was made, or the person confirmed
  UNIQUE (environment_id, webhook_id, team_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX slack_links_by_expiry ON slack_links (code_expires_at) WHERE code_expires_at IS NOT NULL;

CREATE INDEX slack_links_by_operator ON slack_links (operator_id, id) WHERE operator_id IS NOT NULL;

CREATE INDEX slack_links_by_webhook ON slack_links (environment_id, webhook_id, id);

CREATE TABLE stalled_rules (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  idle_minutes INTEGER NOT NULL,
  close_as TEXT -- FAILED, CANCELLED; null: stalled runs stay open
, row_sum INTEGER) STRICT, WITHOUT ROWID;

CREATE TABLE stops (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  id TEXT NOT NULL,
  scope TEXT NOT NULL, -- environment, agent, session or run
  target TEXT NOT NULL,
  names TEXT NOT NULL, -- JSON: what clients may report of the target
  reason TEXT NOT NULL,
  stopped_at INTEGER NOT NULL,
  stopper_kind TEXT NOT NULL,
  stopper_id TEXT NOT NULL,
  stopped_by TEXT NOT NULL,
  resumed_at INTEGER, -- null: in effect
  resumed_by TEXT,
  resume_reason TEXT,
  PRIMARY KEY (environment_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX stops_in_effect ON stops (environment_id, id) WHERE resumed_at IS NULL;

CREATE INDEX tool_calls_by_time ON events (environment_id, time) WHERE event_type = 'TOOL_CALL';

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

CREATE TABLE tool_labels (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  rules TEXT NOT NULL, -- JSON
  changed_at INTEGER NOT NULL,
  changed_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tools (
  environment_id TEXT NOT NULL,
  tool_key TEXT NOT NULL, -- SHA-256 of the name
  tool TEXT NOT NULL,
  PRIMARY KEY (environment_id, tool_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE uncosted_hours (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  model_key TEXT NOT NULL, -- '' for calls without a model
  context INTEGER NOT NULL, -- the threshold that the input of the calls exceeds
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  cache_write_1h_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL, audio_input_tokens INTEGER NOT NULL DEFAULT 0, cached_audio_tokens INTEGER NOT NULL DEFAULT 0, image_input_tokens INTEGER NOT NULL DEFAULT 0, cached_image_tokens INTEGER NOT NULL DEFAULT 0, audio_output_tokens INTEGER NOT NULL DEFAULT 0, image_output_tokens INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, context, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_hours (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  model_key TEXT NOT NULL, -- '' for events without a model
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  events INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_nanos INTEGER NOT NULL,
  runs INTEGER NOT NULL DEFAULT 0, -- that start in this hour, in rows without a model
  completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (environment_id, hour, agent_id, model_key, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE version_latencies (
  environment_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  prompt_version_id TEXT NOT NULL, -- as events name it
  call TEXT NOT NULL, -- LLM_CALL, TOOL_CALL
  bucket INTEGER NOT NULL, -- four for each doubling of the latency
  slot INTEGER NOT NULL, -- the node that wrote it; always 0 in the embedded engine
  calls INTEGER NOT NULL,
  PRIMARY KEY (environment_id, hour, prompt_version_id, call, bucket, slot)
) STRICT, WITHOUT ROWID;

CREATE INDEX version_latencies_by_version ON version_latencies (environment_id, prompt_version_id, hour);

CREATE TABLE version_runs (
  environment_id TEXT NOT NULL,
  prompt_version_id TEXT NOT NULL, -- as events name it
  run TEXT NOT NULL, -- internal id of the run
  first_at INTEGER NOT NULL,
  events INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  blocked INTEGER NOT NULL,
  approvals INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  total_tokens INTEGER NOT NULL,
  cost_nanos INTEGER NOT NULL,
  PRIMARY KEY (environment_id, prompt_version_id, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX version_runs_by_run ON version_runs (environment_id, run);

CREATE INDEX version_runs_by_time ON version_runs (environment_id, first_at);

CREATE TABLE webhook_deliveries (
  webhook_id TEXT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  environment_id TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  next_attempt_at INTEGER,
  response_status INTEGER,
  error TEXT,
  data TEXT NOT NULL, -- JSON object
  PRIMARY KEY (webhook_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (status, environment_id, webhook_id, id);

CREATE TABLE webhooks (
  id TEXT NOT NULL PRIMARY KEY,
  environment_id TEXT NOT NULL REFERENCES environments (id),
  url TEXT NOT NULL,
  description TEXT NOT NULL,
  format TEXT NOT NULL,
  events TEXT NOT NULL, -- JSON array
  secret TEXT NOT NULL, -- needed as it is, to sign
  previous_secret TEXT,
  previous_until INTEGER, -- until when messages are signed with the previous secret too
  signing_secret TEXT, -- of the Slack app, to verify its requests
  shows_input INTEGER NOT NULL DEFAULT 0, -- 1: messages about requests have the beginning of the recorded input
  created_at INTEGER NOT NULL,
  disabled_at INTEGER,
  disabled_reason TEXT,
  dropped_deliveries INTEGER NOT NULL DEFAULT 0
, row_sum INTEGER) STRICT, WITHOUT ROWID;

CREATE INDEX webhooks_by_environment ON webhooks (environment_id, id);

CREATE TABLE work (
  environment_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  due_at INTEGER NOT NULL, -- while it is held: when the lease ends
  attempts INTEGER NOT NULL,
  lease_owner TEXT, -- who holds it
  last_error TEXT,
  PRIMARY KEY (environment_id, kind, subject_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX work_by_due ON work (kind, due_at, environment_id, subject_id);

CREATE INDEX work_by_environment ON work (kind, environment_id, due_at, subject_id);

CREATE TABLE workspaces (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  archived_at INTEGER
) STRICT, WITHOUT ROWID;

-- runs runs_by_agent: 1000000 1000000 20000 2 1
-- runs runs_by_agent_and_status: 1000000 1000000 20000 5000 2 1
-- runs runs_by_session: 1000000 1000000 5 2 1
-- runs runs_by_start: 1000000 1000000 2 1
-- runs runs_by_status: 1000000 1000000 250000 2 1
-- runs runs_ranked_by_cost: 900000 900000 2 1
-- runs runs_ranked_by_failures: 900000 900000 2 1
-- runs runs_ranked_by_length: 900000 900000 2 1
-- runs runs_ranked_by_tokens: 900000 900000 2 1
-- runs runs_with_gaps: 10000 10000 2 1
-- runs runs_with_gaps_of_agent: 10000 10000 200 2 1
-- runs sqlite_autoindex_runs_1: 1000000 1000000 1
-- runs sqlite_autoindex_runs_2: 1000000 1000000 1
