"""Integrations with frameworks, each in a module of its own. None is imported unless used."""
