"""Retrieval: search, representations and contexts."""
