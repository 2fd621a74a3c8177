-- Imports choose ids, so an id is unique only within its environment or workspace.

ALTER TABLE work RENAME TO old_work;
DROP INDEX work_by_due;

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

INSERT INTO work SELECT environment_id, kind, subject_id, due_at, attempts, lease_owner, last_error FROM old_work;
DROP TABLE old_work;

ALTER TABLE prompts RENAME TO old_prompts;
ALTER TABLE prompt_versions RENAME TO old_prompt_versions;
DROP INDEX prompts_by_workspace;

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

-- The content is last: what stands before it is found without it.
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
  PRIMARY KEY (workspace_id, prompt_id, number),
  UNIQUE (workspace_id, id),
  FOREIGN KEY (workspace_id, prompt_id) REFERENCES prompts (workspace_id, id)
) STRICT;

INSERT INTO prompts SELECT workspace_id, id, name, created_at, newest, archived_at FROM old_prompts;
INSERT INTO prompt_versions SELECT p.workspace_id, v.prompt_id, v.number, v.id, v.content_hash, v.content_bytes, v.author,
    v.created_at, v.note, v.content
  FROM old_prompt_versions v JOIN old_prompts p ON p.id = v.prompt_id;
DROP TABLE old_prompt_versions;
DROP TABLE old_prompts;

ALTER TABLE run_views RENAME TO old_run_views;
DROP INDEX run_views_by_environment;

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

INSERT INTO run_views SELECT environment_id, id, name, query, last_hours, columns, created_at FROM old_run_views;
DROP TABLE old_run_views;

-- The import that began in an environment.
CREATE TABLE imports (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  source TEXT NOT NULL, -- SHA-256 of the first line of the export
  started_at INTEGER NOT NULL,
  logged_at INTEGER NOT NULL, -- of its newest audit entry
  logged_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE approvals ADD COLUMN imported_at INTEGER;
