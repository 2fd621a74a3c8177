"""Deployed prompts and policies."""
