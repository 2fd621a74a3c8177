-- JSON. NULL: an earlier version made the simulation, or it asked nothing about a flow.
ALTER TABLE simulations ADD COLUMN tool_labels text;
ALTER TABLE simulations ADD COLUMN flow text;
