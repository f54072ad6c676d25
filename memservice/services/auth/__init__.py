"""Who may do what: principals, the policy, and API keys."""
