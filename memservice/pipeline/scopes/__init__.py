"""Sessions that join and leave scopes."""
