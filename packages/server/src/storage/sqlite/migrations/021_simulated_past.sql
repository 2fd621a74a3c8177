-- JSON. NULL: an earlier version made the simulation, or it asked nothing about a flow.
ALTER TABLE simulations ADD COLUMN tool_labels TEXT;
ALTER TABLE simulations ADD COLUMN flow TEXT;
