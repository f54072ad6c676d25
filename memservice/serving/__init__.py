"""Processes: how the API server and the worker are run together."""
