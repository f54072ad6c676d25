"""Run every scenario of the older client:
`python -m support.clients.older_client URL sync|async`."""

from __future__ import annotations

import sys

import support.clients.older_client.memory
import support.clients.older_client.options
import support.clients.older_client.resources  # noqa: F401  # these register their scenarios
from support.clients.published_client.harness import report

if __name__ == "__main__":
    print(report(*sys.argv[1:]))
