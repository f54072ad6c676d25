"""Asking a reasoner in a process of its own, which can be ended at any moment."""
