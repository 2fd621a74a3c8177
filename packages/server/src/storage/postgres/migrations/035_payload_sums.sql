-- CRC-32 of the payload, as a signed number of four bytes, wherever the payload lies: storage/sql/payloads.ts.
ALTER TABLE events ADD COLUMN payload_sum integer;
