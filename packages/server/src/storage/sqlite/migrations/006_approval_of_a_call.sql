-- An approval belongs to the client and the API key that asked, and to one call.

-- Of the first key of a chain of rotations; null: this one is the first.
ALTER TABLE api_keys ADD COLUMN family TEXT;
WITH RECURSIVE chain (id, family) AS (
  SELECT id, id FROM api_keys WHERE id NOT IN (SELECT replaced_by FROM api_keys WHERE replaced_by IS NOT NULL)
  UNION ALL
  SELECT k.replaced_by, chain.family FROM api_keys k JOIN chain ON k.id = chain.id WHERE k.replaced_by IS NOT NULL
)
UPDATE api_keys SET family = (SELECT chain.family FROM chain WHERE chain.id = api_keys.id)
WHERE id IN (SELECT replaced_by FROM api_keys WHERE replaced_by IS NOT NULL);

ALTER TABLE approvals ADD COLUMN key_family TEXT; -- of the API key that asked; null: asked before this was recorded
ALTER TABLE approvals ADD COLUMN tool_call_id TEXT;
ALTER TABLE approvals ADD COLUMN policy_version TEXT;
ALTER TABLE approvals ADD COLUMN records_input INTEGER; -- 0: the client records no input
ALTER TABLE approvals ADD COLUMN hash_scheme TEXT; -- null: as the SDKs compute it
ALTER TABLE approvals ADD COLUMN input_event_id TEXT; -- the event of its run that has the input
ALTER TABLE approvals ADD COLUMN withdrawn_at INTEGER;
ALTER TABLE approvals ADD COLUMN withdrawn_reason TEXT;
ALTER TABLE approvals ADD COLUMN ran_at INTEGER; -- when it was stored that the call began
ALTER TABLE approvals ADD COLUMN ran_status TEXT;
ALTER TABLE approvals ADD COLUMN last_seen_at INTEGER; -- when the client last waited for the answer
