"""Deriving conclusions from messages."""
