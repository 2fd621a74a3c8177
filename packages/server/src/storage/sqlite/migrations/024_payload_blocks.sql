-- Payloads of idle runs lie in compressed blocks: storage/sql/payloads.ts. A row says where; until then the columns are
-- null and cost it three bytes.
ALTER TABLE events ADD COLUMN payload_bytes INTEGER;
ALTER TABLE events ADD COLUMN block INTEGER;
ALTER TABLE events ADD COLUMN block_at INTEGER; -- first byte in the block
ALTER TABLE runs ADD COLUMN packed INTEGER NOT NULL DEFAULT 0; -- 1: no payload waits to be packed
ALTER TABLE runs ADD COLUMN blocks INTEGER NOT NULL DEFAULT 0; -- counts the blocks ever made; it never falls
CREATE INDEX runs_unpacked ON runs (environment_id, number) WHERE packed = 0;

CREATE TABLE payload_blocks (
  environment_id TEXT NOT NULL,
  run INTEGER NOT NULL, -- number of the run
  block INTEGER NOT NULL,
  packed BLOB NOT NULL, -- a zstd frame
  PRIMARY KEY (environment_id, run, block)
) STRICT;
