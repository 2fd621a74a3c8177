-- When an import brought the row, which then names its author by the word of the file.
ALTER TABLE prompt_versions ADD COLUMN imported_at INTEGER;
ALTER TABLE policy_versions ADD COLUMN imported_at INTEGER;
ALTER TABLE deployments ADD COLUMN imported_at INTEGER;
ALTER TABLE deployment_changes ADD COLUMN imported_at INTEGER;
ALTER TABLE issue_activity ADD COLUMN imported_at INTEGER;
