"""Finding what is known: search, representations and contexts."""
