"""Erases deleted sessions and workspaces."""
