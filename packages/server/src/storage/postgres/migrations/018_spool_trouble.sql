-- What clients of a key last said of their spool; null: nothing.
ALTER TABLE api_keys ADD COLUMN spool_trouble text;
ALTER TABLE api_keys ADD COLUMN spool_trouble_at bigint;
