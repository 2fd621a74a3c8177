CREATE INDEX approvals_that_ran ON approvals (environment_id, run_key, input_hash, ran_at) WHERE ran_at IS NOT NULL;
