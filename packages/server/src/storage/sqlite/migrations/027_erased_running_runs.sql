-- Of the erased runs, those that had not ended.
ALTER TABLE erasures ADD COLUMN running_runs INTEGER NOT NULL DEFAULT 0;
