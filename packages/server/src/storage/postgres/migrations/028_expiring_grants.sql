-- no transaction
-- Standing approvals that nobody ended, by the time at which they expire: a metric counts those that still hold.
CREATE INDEX CONCURRENTLY IF NOT EXISTS approval_grants_by_expiry ON approval_grants (expires_at)
  WHERE ended_at IS NULL;
