-- Work for the background. Control table: small, local, keyed by what is to be done.
CREATE TABLE work (
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  environment_id TEXT NOT NULL,
  due_at INTEGER NOT NULL, -- while it is held: when the lease ends
  attempts INTEGER NOT NULL,
  lease_owner TEXT, -- who holds it
  last_error TEXT,
  PRIMARY KEY (kind, subject_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX work_by_due ON work (kind, due_at, subject_id);

-- Data tables.

-- What clients reported. A decided one is an occurrence, or a recovery, of the issue that its fingerprint belongs to.
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
  UNIQUE (environment_id, id),
  UNIQUE (environment_id, record_key)
) STRICT;
CREATE INDEX issue_records_by_status ON issue_records (environment_id, status, id);
CREATE INDEX issue_records_by_fingerprint ON issue_records (environment_id, fingerprint, record_kind, seen_at, id)
  WHERE fingerprint IS NOT NULL;

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
  PRIMARY KEY (environment_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX issues_by_last_seen ON issues (environment_id, last_seen, id) WHERE merged_into IS NULL;
CREATE INDEX issues_by_state ON issues (environment_id, state, last_seen, id) WHERE merged_into IS NULL;
CREATE INDEX issues_by_target ON issues (environment_id, merged_into, id) WHERE merged_into IS NOT NULL;

-- Each set of facts once; its numbers are those of the records that have it.
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

-- The runs and agents in which something was detected.
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

-- Comments, and what happened to an issue.
CREATE TABLE issue_activity (
  environment_id TEXT NOT NULL,
  issue_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  actor TEXT, -- JSON; NULL for the service
  text TEXT,
  detail TEXT NOT NULL, -- JSON object
  PRIMARY KEY (environment_id, issue_id, at, id)
) STRICT, WITHOUT ROWID;
