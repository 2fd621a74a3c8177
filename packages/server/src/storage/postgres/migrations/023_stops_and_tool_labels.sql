-- Scopes in which no guarded call may run (storage/sql/policies/stops.ts). `target`: the id as the operator named it; '' for the environment.
CREATE TABLE stops (
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  id text COLLATE "C" NOT NULL,
  scope text NOT NULL, -- environment, agent, session or run
  target text NOT NULL,
  names text NOT NULL, -- JSON: what clients may report of the target
  reason text NOT NULL,
  stopped_at bigint NOT NULL,
  stopper_kind text NOT NULL,
  stopper_id text NOT NULL,
  stopped_by text NOT NULL,
  resumed_at bigint, -- null: in effect
  resumed_by text,
  resume_reason text,
  PRIMARY KEY (environment_id, id)
);
CREATE INDEX stops_in_effect ON stops (environment_id, id) WHERE resumed_at IS NULL;

-- Labels of the tools of an environment, which its configuration serves.
CREATE TABLE tool_labels (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  rules text NOT NULL, -- JSON
  changed_at bigint NOT NULL,
  changed_by text NOT NULL
);
