"""History of a run, for conditions on its past."""
