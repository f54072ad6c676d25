"""Answering questions about a peer."""
