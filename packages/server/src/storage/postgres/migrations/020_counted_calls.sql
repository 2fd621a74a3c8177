-- JSON: what usage counts of a call besides `tokens` and `cost_nanos`, so that a part of an hour can be counted from its
-- events (storage/sql/runs/part-hours.ts). NULL: nothing, or an earlier version stored the event.
ALTER TABLE events ADD COLUMN counted text;
