"""Run every scenario of the first generation's client: `python -m e2e.first_client URL sync|async KEY`."""

from __future__ import annotations

import sys

import e2e.first_client.everything  # noqa: F401  # registers its scenarios
from e2e.first_client.harness import report

if __name__ == "__main__":
    print(report(*sys.argv[1:4]))
