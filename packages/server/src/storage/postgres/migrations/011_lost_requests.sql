-- OpenTelemetry requests of a key that were refused. Exporters never repeat them.
ALTER TABLE api_keys ADD COLUMN lost_requests bigint NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN last_lost_at bigint;
ALTER TABLE api_keys ADD COLUMN last_lost_reason text;
