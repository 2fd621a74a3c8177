-- All rows have been moved.
DROP TABLE old_events;
DROP TABLE old_runs;
