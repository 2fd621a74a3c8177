-- OpenTelemetry requests of a key that were refused. Exporters never repeat them.
ALTER TABLE api_keys ADD COLUMN lost_requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN last_lost_at INTEGER;
ALTER TABLE api_keys ADD COLUMN last_lost_reason TEXT;
