-- Payloads of idle runs lie in compressed blocks: storage/sql/payloads.ts. A row says where; until then the columns are
-- null and cost it nothing.
ALTER TABLE events ADD COLUMN payload_bytes integer;
ALTER TABLE events ADD COLUMN block integer;
ALTER TABLE events ADD COLUMN block_at integer; -- first byte in the block
ALTER TABLE runs ADD COLUMN packed integer NOT NULL DEFAULT 0; -- 1: no payload waits to be packed
ALTER TABLE runs ADD COLUMN blocks integer NOT NULL DEFAULT 0; -- counts the blocks ever made; it never falls
CREATE INDEX runs_unpacked ON runs (environment_id, number) WHERE packed = 0;

CREATE TABLE payload_blocks (
  environment_id uuid NOT NULL,
  run bigint NOT NULL, -- number of the run
  block integer NOT NULL,
  packed bytea NOT NULL, -- a zstd frame
  PRIMARY KEY (environment_id, run, block)
);
-- It is compressed already.
ALTER TABLE payload_blocks ALTER COLUMN packed SET STORAGE EXTERNAL;
