"""Observability for operators: events, metrics, logs."""
