-- Audio and image tokens of calls without a cost: their prices are not those of text.
ALTER TABLE uncosted_hours ADD COLUMN audio_input_tokens bigint NOT NULL DEFAULT 0;
ALTER TABLE uncosted_hours ADD COLUMN cached_audio_tokens bigint NOT NULL DEFAULT 0;
ALTER TABLE uncosted_hours ADD COLUMN image_input_tokens bigint NOT NULL DEFAULT 0;
ALTER TABLE uncosted_hours ADD COLUMN cached_image_tokens bigint NOT NULL DEFAULT 0;
ALTER TABLE uncosted_hours ADD COLUMN audio_output_tokens bigint NOT NULL DEFAULT 0;
ALTER TABLE uncosted_hours ADD COLUMN image_output_tokens bigint NOT NULL DEFAULT 0;
