"""Consolidating conclusions."""
