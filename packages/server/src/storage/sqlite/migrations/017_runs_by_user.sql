CREATE INDEX runs_by_user ON runs (environment_id, user_key, started_at, id) WHERE user_key IS NOT NULL;
