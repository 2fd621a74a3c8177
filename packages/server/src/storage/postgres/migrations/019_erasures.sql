-- Removed runs, and what operators erased.

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

-- To find by what an erasure names. Events of a session that is not the one of their run are rare. Texts may be longer than
-- an index row, so some are found by their MD5.
CREATE INDEX events_of_other_sessions ON events (environment_id, md5(own_session)) WHERE own_session > '=';
CREATE INDEX approvals_by_session ON approvals (environment_id, md5(session_id)) WHERE session_id IS NOT NULL;
CREATE INDEX approvals_by_client ON approvals (environment_id, md5(client_id));
CREATE INDEX approvals_by_named_agent ON approvals (environment_id, md5(agent_id)) WHERE agent_id IS NOT NULL;
CREATE INDEX issue_records_by_run ON issue_records (environment_id, md5(run_id)) WHERE run_id IS NOT NULL;
CREATE INDEX issue_records_by_session ON issue_records (environment_id, md5(session_id)) WHERE session_id IS NOT NULL;
CREATE INDEX issue_records_by_agent ON issue_records (environment_id, md5(agent_id));
CREATE INDEX issue_records_by_client ON issue_records (environment_id, md5(sdk_instance_id));
CREATE INDEX version_runs_by_run ON version_runs (environment_id, run);
