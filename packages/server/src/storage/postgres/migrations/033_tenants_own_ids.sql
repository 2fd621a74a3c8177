-- Imports choose ids, so an id is unique only within its environment or workspace.

ALTER TABLE work DROP CONSTRAINT work_pkey, ADD PRIMARY KEY (environment_id, kind, subject_id);
DROP INDEX work_by_due;
CREATE INDEX work_by_due ON work (kind, due_at, environment_id, subject_id);

ALTER TABLE prompt_versions DROP CONSTRAINT prompt_versions_prompt_id_fkey;
DROP INDEX prompts_by_workspace;
ALTER TABLE prompts DROP CONSTRAINT prompts_pkey, ADD PRIMARY KEY (workspace_id, id);

ALTER TABLE prompt_versions RENAME TO old_prompt_versions;
ALTER TABLE old_prompt_versions DROP CONSTRAINT prompt_versions_id_key;

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
  PRIMARY KEY (workspace_id, prompt_id, number),
  UNIQUE (workspace_id, id),
  FOREIGN KEY (workspace_id, prompt_id) REFERENCES prompts (workspace_id, id)
);
INSERT INTO prompt_versions SELECT p.workspace_id, v.prompt_id, v.number, v.id, v.content_hash, v.content_bytes, v.author,
    v.created_at, v.note, v.content
  FROM old_prompt_versions v JOIN prompts p ON p.id = v.prompt_id;
DROP TABLE old_prompt_versions;

DROP INDEX run_views_by_environment;
ALTER TABLE run_views DROP CONSTRAINT run_views_pkey, ADD PRIMARY KEY (environment_id, id);

-- The import that began in an environment.
CREATE TABLE imports (
  environment_id text COLLATE "C" PRIMARY KEY REFERENCES environments (id),
  source text NOT NULL, -- SHA-256 of the first line of the export
  started_at bigint NOT NULL,
  logged_at bigint NOT NULL, -- of its newest audit entry
  logged_by text NOT NULL
);

ALTER TABLE approvals ADD COLUMN imported_at bigint;
