"""Run every scenario of the client library:
`python -m support.clients.sdk_client URL sync|async KEY`."""

from __future__ import annotations

import sys

import support.clients.sdk_client.memory
import support.clients.sdk_client.resources  # noqa: F401  # both register their scenarios
from support.clients.sdk_client.harness import report

if __name__ == "__main__":
    print(report(*sys.argv[1:]))
