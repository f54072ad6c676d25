"""JSON Web Tokens."""
