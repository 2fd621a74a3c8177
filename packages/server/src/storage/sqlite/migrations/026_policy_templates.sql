-- How a request of the policy reads.
ALTER TABLE policy_versions ADD COLUMN template TEXT; -- null: found from its input and condition
