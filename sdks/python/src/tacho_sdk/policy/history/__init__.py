"""What a run has done and read, for conditions on its past."""
