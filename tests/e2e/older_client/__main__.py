"""Run every scenario of the older client: `python -m e2e.older_client URL sync|async`."""

from __future__ import annotations

import sys

import e2e.older_client.memory
import e2e.older_client.options
import e2e.older_client.places  # noqa: F401  # these register their scenarios
from e2e.published_client.harness import report

if __name__ == "__main__":
    print(report(*sys.argv[1:]))
