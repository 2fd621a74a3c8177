-- People and groups that a directory manages through SCIM.
CREATE TABLE directory_people (
  operator_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES operators (id),
  user_name text COLLATE "C" NOT NULL,
  user_key text COLLATE "C" NOT NULL UNIQUE, -- in lower case
  external_id text COLLATE "C",
  active smallint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX directory_people_by_external_id ON directory_people (external_id);

CREATE TABLE directory_groups (
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  name_key text COLLATE "C" NOT NULL UNIQUE, -- in lower case
  external_id text COLLATE "C",
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX directory_groups_by_external_id ON directory_groups (external_id);

CREATE TABLE directory_members (
  group_id text COLLATE "C" NOT NULL REFERENCES directory_groups (id),
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  PRIMARY KEY (group_id, operator_id)
);
CREATE INDEX directory_members_by_operator ON directory_members (operator_id, group_id);

-- Tokens that a person made end with the person's access.
CREATE INDEX operator_tokens_by_creator ON operator_tokens (creator_id);
