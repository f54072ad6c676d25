"""Runs a reasoner in a separate process, which can be stopped at any time."""
