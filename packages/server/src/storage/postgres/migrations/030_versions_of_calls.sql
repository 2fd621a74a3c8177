-- A run keeps which prompt version its calls without a cost name, in runs.uncosted, from now on. Hours have them by agent.
DELETE FROM uncosted_hours WHERE grouped_by = 'promptVersion';
ALTER TABLE uncosted_hours DROP CONSTRAINT uncosted_hours_pkey;
ALTER TABLE uncosted_hours DROP COLUMN grouped_by;
ALTER TABLE uncosted_hours RENAME COLUMN key TO agent_id;
ALTER TABLE uncosted_hours ADD CONSTRAINT uncosted_hours_pkey PRIMARY KEY (environment_id, hour, agent_id, model_key, context, slot);
