-- Policies that need two people, and never the one who runs the agent.
ALTER TABLE policy_versions ADD COLUMN approvers bigint; -- how many people; null: one
ALTER TABLE api_keys ADD COLUMN creator_kind text; -- operator, token; null: the service, or not recorded
ALTER TABLE api_keys ADD COLUMN creator_id text;
ALTER TABLE approvals ADD COLUMN approvers bigint; -- how many people must approve; null: one
ALTER TABLE approvals ADD COLUMN first_approval text; -- JSON: the first of two
ALTER TABLE approvals ADD COLUMN policy_versions text; -- JSON: of the policies that the recorded decision names
