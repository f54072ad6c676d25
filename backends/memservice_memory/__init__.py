"""A part of memservice."""
