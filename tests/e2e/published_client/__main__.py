"""Run every scenario against a server, in the client's environment: `python -m e2e.published_client URL sync|async`."""

from __future__ import annotations

import sys

# These register their scenarios.
import e2e.published_client.chat
import e2e.published_client.conclusions
import e2e.published_client.context
import e2e.published_client.dreams
import e2e.published_client.memory
import e2e.published_client.messages
import e2e.published_client.options
import e2e.published_client.places
import e2e.published_client.removal
import e2e.published_client.scopes
import e2e.published_client.search
import e2e.published_client.uploads  # noqa: F401
from e2e.published_client.harness import report

if __name__ == "__main__":
    print(report(*sys.argv[1:]))
