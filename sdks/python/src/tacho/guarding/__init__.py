"""Guarded tools and approvals."""
