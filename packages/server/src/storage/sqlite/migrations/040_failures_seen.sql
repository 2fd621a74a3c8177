-- Issue records that the service makes of failures in recorded events.
ALTER TABLE issue_records ADD COLUMN origin TEXT NOT NULL DEFAULT 'CLIENT'; -- CLIENT, SERVICE
-- The record of the service that counts the failure that this one reports.
ALTER TABLE issue_records ADD COLUMN same_as TEXT;
