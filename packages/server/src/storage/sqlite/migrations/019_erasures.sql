-- Removed runs, and what operators erased.

-- No reader sees these runs. Their events are deleted in slices; the row goes with the last one.
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
  checksum TEXT NOT NULL,
  PRIMARY KEY (environment_id, id)
) STRICT, WITHOUT ROWID;

-- Events that name one of these, with a time up to `until`, are refused.
CREATE TABLE erased_keys (
  environment_id TEXT NOT NULL,
  erased_key TEXT NOT NULL, -- SHA-256 of the kind and the id
  until INTEGER NOT NULL,
  PRIMARY KEY (environment_id, erased_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX erased_keys_by_time ON erased_keys (environment_id, until);

-- Grows with every erasure, so that appends look only where something was erased, and forget what they cache of it.
CREATE TABLE erasure_revisions (
  environment_id TEXT NOT NULL PRIMARY KEY,
  revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- To find by what an erasure names. Events of a session that is not the one of their run are rare.
CREATE INDEX events_of_other_sessions ON events (environment_id, own_session) WHERE own_session > '=';
CREATE INDEX approvals_by_session ON approvals (environment_id, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX approvals_by_client ON approvals (environment_id, client_id);
CREATE INDEX approvals_by_named_agent ON approvals (environment_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX issue_records_by_run ON issue_records (environment_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX issue_records_by_session ON issue_records (environment_id, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX issue_records_by_agent ON issue_records (environment_id, agent_id);
CREATE INDEX issue_records_by_client ON issue_records (environment_id, sdk_instance_id);
CREATE INDEX version_runs_by_run ON version_runs (environment_id, run);
