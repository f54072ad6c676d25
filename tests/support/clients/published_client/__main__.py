"""Run every scenario against a server, in the client's environment:
`python -m support.clients.published_client URL sync|async`."""

from __future__ import annotations

import sys

# These register their scenarios.
import support.clients.published_client.chat
import support.clients.published_client.conclusions
import support.clients.published_client.context
import support.clients.published_client.dreams
import support.clients.published_client.erasures
import support.clients.published_client.memory
import support.clients.published_client.messages
import support.clients.published_client.options
import support.clients.published_client.removal
import support.clients.published_client.resources
import support.clients.published_client.scopes
import support.clients.published_client.search
import support.clients.published_client.statements
import support.clients.published_client.uploads  # noqa: F401
from support.clients.published_client.harness import report

if __name__ == "__main__":
    print(report(*sys.argv[1:]))
