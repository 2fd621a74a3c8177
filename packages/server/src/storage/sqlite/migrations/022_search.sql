-- Search over payload text, for environments where it is on.

CREATE TABLE search_settings (
  environment_id TEXT NOT NULL PRIMARY KEY REFERENCES environments (id),
  state TEXT NOT NULL, -- ON, REMOVING
  changed_at INTEGER NOT NULL,
  older_before INTEGER, -- runs that start earlier are not yet queued; null: all are
  older_id TEXT, -- with older_before: the last run that was queued
  indexed_events INTEGER NOT NULL,
  error TEXT
) STRICT, WITHOUT ROWID;

-- How far the events of each run are indexed.
CREATE TABLE search_runs (
  environment_id TEXT NOT NULL,
  run INTEGER NOT NULL, -- number of the run
  id TEXT NOT NULL, -- internal id of the run
  indexed_seq INTEGER NOT NULL,
  marks INTEGER NOT NULL, -- how often events were added
  marked_at INTEGER, -- since when events wait; null: all are indexed
  PRIMARY KEY (environment_id, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX search_runs_marked ON search_runs (environment_id, run) WHERE marked_at IS NOT NULL;

-- Indexed events. The place is the event time and, in its lowest 21 bits, a part of the seq: the order of the results.
CREATE TABLE search_entries (
  place INTEGER PRIMARY KEY,
  environment_id TEXT NOT NULL,
  run INTEGER NOT NULL, -- number of the run
  seq INTEGER NOT NULL
) STRICT;
CREATE INDEX search_entries_by_run ON search_entries (environment_id, run);

-- Only hashes of words, by place. The words are compared with the stored event.
CREATE VIRTUAL TABLE search_words USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
CREATE TRIGGER search_entries_removed AFTER DELETE ON search_entries BEGIN
  DELETE FROM search_words WHERE rowid = old.place;
END;
