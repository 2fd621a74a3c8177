-- The deletion of archived environments.
ALTER TABLE environments ADD COLUMN delete_at bigint; -- when its data is deleted; NULL: nobody asked for it
ALTER TABLE environments ADD COLUMN removed_at bigint; -- since then no reader finds it
ALTER TABLE environments ADD COLUMN deletion text; -- JSON: who asked for it, and what has been deleted
