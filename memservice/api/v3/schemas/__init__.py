"""Schemas of generation 3."""
