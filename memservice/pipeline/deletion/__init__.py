"""Erasing what was deleted."""
