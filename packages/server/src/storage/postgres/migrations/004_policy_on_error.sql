-- What a condition that cannot be evaluated counts as; null: by severity, as before.
ALTER TABLE policy_versions ADD COLUMN on_error text;
ALTER TABLE simulations ADD COLUMN on_error text;
