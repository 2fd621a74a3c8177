"""How events and issue records reach the service."""
