-- Why a run failed (storage/failure.ts), null for runs of before. The message is content: it goes with the payloads.
ALTER TABLE runs ADD COLUMN failure TEXT;
ALTER TABLE runs ADD COLUMN failure_message TEXT;

-- In the interface, runs that the stalled rule closed are RUNNING: its list finds them here.
CREATE INDEX runs_by_rule ON runs (environment_id, started_at, id) WHERE rule_closed_at IS NOT NULL;

-- The stalled rule is on by default. New environments come with this work.
INSERT INTO work (environment_id, kind, subject_id, due_at, attempts)
  SELECT id, 'close_stalled', id, 0, 0 FROM environments WHERE removed_at IS NULL
  ON CONFLICT (environment_id, kind, subject_id) DO NOTHING;
