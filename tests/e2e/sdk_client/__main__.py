"""Run every scenario of the client library: `python -m e2e.sdk_client URL sync|async KEY`."""

from __future__ import annotations

import sys

import e2e.sdk_client.memory
import e2e.sdk_client.places  # noqa: F401  # both register their scenarios
from e2e.sdk_client.harness import report

if __name__ == "__main__":
    print(report(*sys.argv[1:]))
