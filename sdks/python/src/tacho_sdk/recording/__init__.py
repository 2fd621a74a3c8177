"""Events: how they are made, masked and bounded."""
