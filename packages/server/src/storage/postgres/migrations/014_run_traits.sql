-- What the list of runs is filtered by, counted and noted while events are stored. NULL: the run is older than that.

ALTER TABLE runs ADD COLUMN error_count bigint;
ALTER TABLE runs ADD COLUMN traits text; -- lines of tools, models, policies and prompt versions
