-- The CRC-32 of what a row says; null: the row is from before, and gets one when it is written again.
ALTER TABLE policy_versions ADD COLUMN row_sum bigint;
ALTER TABLE prompt_versions ADD COLUMN row_sum bigint;
ALTER TABLE deployments ADD COLUMN row_sum bigint;
ALTER TABLE retention_settings ADD COLUMN row_sum bigint;
ALTER TABLE stalled_rules ADD COLUMN row_sum bigint;
ALTER TABLE prices ADD COLUMN row_sum bigint;
ALTER TABLE alerts ADD COLUMN row_sum bigint;
ALTER TABLE webhooks ADD COLUMN row_sum bigint;
