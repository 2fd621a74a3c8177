-- The token that a rotation created in its place.
ALTER TABLE operator_tokens ADD COLUMN replaced_by text;
