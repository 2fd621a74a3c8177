-- When an ignored issue opens again by itself.
ALTER TABLE issues ADD COLUMN ignored_until bigint; -- null: not by itself
