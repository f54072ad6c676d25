"""Authorisation: principals, the policy, and API keys."""
