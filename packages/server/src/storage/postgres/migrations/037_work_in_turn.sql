-- Work is claimed in turn from the environments that have some.
CREATE INDEX work_by_environment ON work (kind, environment_id, due_at, subject_id);
