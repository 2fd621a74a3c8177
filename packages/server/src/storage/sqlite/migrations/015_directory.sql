-- People and groups that a directory manages through SCIM.
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

-- Tokens that a person made end with the person's access.
CREATE INDEX operator_tokens_by_creator ON operator_tokens (creator_id);
