-- Roles that groups of the identity provider gave, and the role by hand that one of them stands in for.
ALTER TABLE operator_roles ADD COLUMN from_groups smallint NOT NULL DEFAULT 0;
ALTER TABLE operator_roles ADD COLUMN hand_role text;
