-- Checksums of what gives access, as the configuration has; null: the row is from before.
ALTER TABLE api_keys ADD COLUMN row_sum INTEGER;
ALTER TABLE operator_tokens ADD COLUMN row_sum INTEGER;
ALTER TABLE operator_roles ADD COLUMN row_sum INTEGER;
