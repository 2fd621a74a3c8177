-- Who invited: an invitation ends with them. Null: the service itself.
ALTER TABLE operator_invitations ADD COLUMN inviter_kind text; -- operator, token
ALTER TABLE operator_invitations ADD COLUMN inviter_id text;
