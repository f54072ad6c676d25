"""Erasure on request: messages, peers, sessions and workspaces, each with a receipt."""
