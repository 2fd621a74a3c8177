-- Indexes for lists that read more than their rows, and the count of webhook messages that were dropped.

ALTER TABLE webhooks ADD COLUMN dropped_deliveries INTEGER NOT NULL DEFAULT 0;
DROP INDEX webhook_deliveries_by_status;
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (status, environment_id, webhook_id, id);

-- The log of one workspace, and of all, by each of its filters. The filter comes first: a query without it must not
-- find these indexes, because PostgreSQL would sort a whole workspace while it has no statistics.
CREATE INDEX audit_log_by_action ON audit_log (action, workspace_id, id);
CREATE INDEX audit_log_by_actor ON audit_log (actor_id, workspace_id, id);
CREATE INDEX audit_log_by_target ON audit_log (target_id, workspace_id, id);
CREATE INDEX audit_log_by_target_kind ON audit_log (target_kind, workspace_id, id);
CREATE INDEX audit_log_everywhere_by_action ON audit_log (action, id);
CREATE INDEX audit_log_everywhere_by_actor ON audit_log (actor_id, id);
CREATE INDEX audit_log_everywhere_by_target ON audit_log (target_id, id);
CREATE INDEX audit_log_everywhere_by_target_kind ON audit_log (target_kind, id);

CREATE INDEX issues_by_assignee ON issues (environment_id, assignee, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NOT NULL;
CREATE INDEX issues_assigned ON issues (environment_id, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NOT NULL;
CREATE INDEX issues_unassigned ON issues (environment_id, last_seen, id)
  WHERE merged_into IS NULL AND assignee IS NULL;
CREATE INDEX issue_records_by_kind ON issue_records (environment_id, record_kind, id);
