"""Rules of generation 2 of the API only."""
