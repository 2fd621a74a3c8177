-- The revision at which approvals were last removed, so that open streams and long polls look again.
ALTER TABLE approval_feeds ADD COLUMN removed_revision INTEGER NOT NULL DEFAULT 0;
