-- What clients of a key last said of their spool; null: nothing.
ALTER TABLE api_keys ADD COLUMN spool_trouble TEXT;
ALTER TABLE api_keys ADD COLUMN spool_trouble_at INTEGER;
