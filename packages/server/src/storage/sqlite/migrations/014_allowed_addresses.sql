-- Networks from which a credential is valid, a JSON array. Null: from every address.
ALTER TABLE api_keys ADD COLUMN allowed_addresses TEXT;
ALTER TABLE operator_tokens ADD COLUMN allowed_addresses TEXT;
-- The operator or token that made a token. Null: the service, or a build of before.
ALTER TABLE operator_tokens ADD COLUMN creator_kind TEXT;
ALTER TABLE operator_tokens ADD COLUMN creator_id TEXT;
ALTER TABLE operator_tokens ADD COLUMN creator_name TEXT;
