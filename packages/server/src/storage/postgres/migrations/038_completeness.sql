-- What each SDK instance numbered and what of it arrived, counted while events are stored. NULL: nothing was numbered.

ALTER TABLE runs ADD COLUMN recorders text; -- JSON, as in storage/completeness.ts
ALTER TABLE runs ADD COLUMN has_gaps integer NOT NULL DEFAULT 0;

CREATE INDEX runs_with_gaps ON runs (environment_id, started_at, id) WHERE has_gaps = 1;
CREATE INDEX runs_with_gaps_of_agent ON runs (environment_id, agent_id, started_at, id) WHERE has_gaps = 1;
