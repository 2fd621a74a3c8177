-- All rows have been moved.
DROP TABLE old_events;
DROP TABLE events_moved;
ALTER TABLE runs ALTER COLUMN number SET NOT NULL;
CREATE UNIQUE INDEX runs_by_number ON runs (environment_id, number);
