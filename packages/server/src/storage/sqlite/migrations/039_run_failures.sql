-- Why a run failed (storage/failure.ts), null for runs of before. The message is content: it goes with the payloads.
ALTER TABLE runs ADD COLUMN failure TEXT;
ALTER TABLE runs ADD COLUMN failure_message TEXT;
