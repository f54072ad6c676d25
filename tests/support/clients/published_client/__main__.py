"""Run scenarios against a server, in the client's environment:
`python -m support.clients.published_client URL sync|async [FILE…]`. Without names of files, those
of all are run."""

from __future__ import annotations

import sys
from importlib import import_module

from support.clients.published_client.harness import report

FILES = (
    "chat",
    "conclusions",
    "context",
    "dreams",
    "erasures",
    "memory",
    "messages",
    "options",
    "removal",
    "resources",
    "scopes",
    "search",
    "statements",
    "uploads",
)

if __name__ == "__main__":
    url, face, *files = sys.argv[1:]
    for file in files or FILES:
        # Its scenarios are registered.
        import_module(f"support.clients.published_client.{file}")
    print(report(url, face))
