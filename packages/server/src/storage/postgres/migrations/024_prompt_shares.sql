-- A version of a prompt that a share of the sessions gets, beside the version in force. One for each prompt and environment.
CREATE TABLE prompt_shares (
  environment_id text COLLATE "C" NOT NULL REFERENCES environments (id),
  prompt_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  percent bigint NOT NULL,
  salt text COLLATE "C" NOT NULL, -- of the hash that decides; a new one for each share, so that other sessions come first
  started_at bigint NOT NULL,
  started_by text NOT NULL,
  imported_at bigint,
  row_sum bigint,
  PRIMARY KEY (environment_id, prompt_id)
);

-- Of a change of a share: its version and its percentage after it; 0: it ended.
ALTER TABLE deployment_changes ADD COLUMN share_version bigint;
ALTER TABLE deployment_changes ADD COLUMN share_percent bigint;
