-- Work for the background. Control table: small, local, keyed by what is to be done. Rows come and go: vacuum often.
CREATE TABLE work (
  kind text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  environment_id text COLLATE "C" NOT NULL,
  due_at bigint NOT NULL, -- while it is held: when the lease ends
  attempts integer NOT NULL,
  lease_owner text, -- who holds it
  last_error text,
  PRIMARY KEY (kind, subject_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX work_by_due ON work (kind, due_at, subject_id);

-- Data tables.

-- What clients reported. A decided one is an occurrence, or a recovery, of the issue that its fingerprint belongs to.
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
  PRIMARY KEY (environment_id, id),
  UNIQUE (environment_id, record_key)
) WITH (fillfactor = 80);
CREATE INDEX issue_records_by_status ON issue_records (environment_id, status, id);
CREATE INDEX issue_records_by_fingerprint ON issue_records (environment_id, fingerprint, record_kind, seen_at, id)
  WHERE fingerprint IS NOT NULL;

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
  PRIMARY KEY (environment_id, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX issues_by_last_seen ON issues (environment_id, last_seen, id) WHERE merged_into IS NULL;
CREATE INDEX issues_by_state ON issues (environment_id, state, last_seen, id) WHERE merged_into IS NULL;
CREATE INDEX issues_by_target ON issues (environment_id, merged_into, id) WHERE merged_into IS NOT NULL;

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
  PRIMARY KEY (environment_id, issue_id, at, id)
);
