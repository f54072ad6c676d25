"""Run every scenario of the first generation's client:
`python -m support.clients.first_client URL sync|async KEY`."""

from __future__ import annotations

import sys

import support.clients.first_client.everything  # noqa: F401  # registers its scenarios
from support.clients.first_client.harness import report

if __name__ == "__main__":
    print(report(*sys.argv[1:4]))
