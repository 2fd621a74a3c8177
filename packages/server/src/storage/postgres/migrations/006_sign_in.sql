-- People: who they are, what they may do where, how they sign in. Control tables.

CREATE TABLE operators (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  email text COLLATE "C" NOT NULL UNIQUE, -- in lower case
  email_verified smallint NOT NULL, -- whether an identity provider has vouched for it
  two_factor_enabled smallint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);

CREATE TABLE operator_roles (
  scope text COLLATE "C" NOT NULL, -- id of a workspace, or 'installation': every workspace
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  role text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (scope, operator_id)
);
CREATE INDEX operator_roles_by_operator ON operator_roles (operator_id, scope);

-- The link is not kept, only the SHA-256 of the text in it. One that ended is pending no more and stays as a trace.
CREATE TABLE operator_invitations (
  id text COLLATE "C" PRIMARY KEY,
  hash text COLLATE "C" NOT NULL,
  email text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  invited_by text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  ended_at bigint -- accepted, revoked or replaced by a newer one
);
CREATE INDEX operator_invitations_by_scope ON operator_invitations (scope, id) WHERE ended_at IS NULL;
CREATE INDEX operator_invitations_by_email ON operator_invitations (email, scope) WHERE ended_at IS NULL;

-- Ways in: a password, or an account at an identity provider.
CREATE TABLE operator_accounts (
  id text COLLATE "C" PRIMARY KEY,
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  provider_id text COLLATE "C" NOT NULL,
  account_id text COLLATE "C" NOT NULL,
  password text, -- argon2id, in PHC form
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  UNIQUE (provider_id, account_id)
);
CREATE INDEX operator_accounts_by_operator ON operator_accounts (operator_id);

CREATE TABLE operator_sessions (
  id text COLLATE "C" PRIMARY KEY,
  operator_id text COLLATE "C" NOT NULL REFERENCES operators (id),
  token_hash text COLLATE "C" NOT NULL UNIQUE, -- SHA-256 of the token in the cookie
  ip_address text,
  user_agent text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  last_used_at bigint
);
CREATE INDEX operator_sessions_by_operator ON operator_sessions (operator_id, id);
CREATE INDEX operator_sessions_by_expiry ON operator_sessions (expires_at);

CREATE TABLE operator_second_factors (
  id text COLLATE "C" PRIMARY KEY,
  operator_id text COLLATE "C" NOT NULL UNIQUE REFERENCES operators (id),
  secret text NOT NULL, -- encrypted
  recovery_codes text NOT NULL, -- encrypted
  verified smallint NOT NULL,
  failed_attempts integer NOT NULL DEFAULT 0,
  locked_until bigint
);

-- Sign-ins under way: what a second factor or an identity provider must answer.
CREATE TABLE sign_in_challenges (
  id text COLLATE "C" PRIMARY KEY,
  identifier text COLLATE "C" NOT NULL,
  value text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX sign_in_challenges_by_identifier ON sign_in_challenges (identifier, created_at);
CREATE INDEX sign_in_challenges_by_expiry ON sign_in_challenges (expires_at);
