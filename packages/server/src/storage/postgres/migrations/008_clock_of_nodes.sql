-- How far the database's clock is ahead of the node's. Null: a node of the version before.
ALTER TABLE nodes ADD COLUMN clock_offset_ms bigint;
