-- A version of a prompt that a share of the sessions gets, beside the version in force. One for each prompt and environment.
CREATE TABLE prompt_shares (
  environment_id TEXT NOT NULL REFERENCES environments (id),
  prompt_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  percent INTEGER NOT NULL,
  salt TEXT NOT NULL, -- of the hash that decides; a new one for each share, so that other sessions come first
  started_at INTEGER NOT NULL,
  started_by TEXT NOT NULL,
  imported_at INTEGER,
  row_sum INTEGER,
  PRIMARY KEY (environment_id, prompt_id)
) STRICT, WITHOUT ROWID;

-- Of a change of a share: its version and its percentage after it; 0: it ended.
ALTER TABLE deployment_changes ADD COLUMN share_version INTEGER;
ALTER TABLE deployment_changes ADD COLUMN share_percent INTEGER;
