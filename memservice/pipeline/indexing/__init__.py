"""Keeps the text and vector indexes consistent with the rows."""
