"""Keeping the text and vector indexes equal to the rows."""
