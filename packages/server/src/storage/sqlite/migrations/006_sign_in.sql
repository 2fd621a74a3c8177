-- People: who they are, what they may do where, how they sign in. Control tables.

CREATE TABLE operators (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE, -- in lower case
  email_verified INTEGER NOT NULL, -- whether an identity provider has vouched for it
  two_factor_enabled INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE operator_roles (
  scope TEXT NOT NULL, -- id of a workspace, or 'installation': every workspace
  operator_id TEXT NOT NULL REFERENCES operators (id),
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (scope, operator_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX operator_roles_by_operator ON operator_roles (operator_id, scope);

-- The link is not kept, only the SHA-256 of the text in it. One that ended is pending no more and stays as a trace.
CREATE TABLE operator_invitations (
  id TEXT NOT NULL PRIMARY KEY,
  hash TEXT NOT NULL,
  email TEXT NOT NULL,
  scope TEXT NOT NULL,
  role TEXT NOT NULL,
  invited_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at INTEGER -- accepted, revoked or replaced by a newer one
) STRICT, WITHOUT ROWID;
CREATE INDEX operator_invitations_by_scope ON operator_invitations (scope, id) WHERE ended_at IS NULL;
CREATE INDEX operator_invitations_by_email ON operator_invitations (email, scope) WHERE ended_at IS NULL;

-- Ways in: a password, or an account at an identity provider.
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
CREATE INDEX operator_sessions_by_operator ON operator_sessions (operator_id, id);
CREATE INDEX operator_sessions_by_expiry ON operator_sessions (expires_at);

CREATE TABLE operator_second_factors (
  id TEXT NOT NULL PRIMARY KEY,
  operator_id TEXT NOT NULL UNIQUE REFERENCES operators (id),
  secret TEXT NOT NULL, -- encrypted
  recovery_codes TEXT NOT NULL, -- encrypted
  verified INTEGER NOT NULL,
  failed_attempts INTEGER NOT NULL DEFAULT 0,
  locked_until INTEGER
) STRICT, WITHOUT ROWID;

-- Sign-ins under way: what a second factor or an identity provider must answer.
CREATE TABLE sign_in_challenges (
  id TEXT NOT NULL PRIMARY KEY,
  identifier TEXT NOT NULL,
  value TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_challenges_by_identifier ON sign_in_challenges (identifier, created_at);
CREATE INDEX sign_in_challenges_by_expiry ON sign_in_challenges (expires_at);
