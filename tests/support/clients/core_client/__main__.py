"""Run the scenarios that this version has words for:
`python -m support.clients.core_client URL sync|async KEY`."""

from __future__ import annotations

import importlib
import sys

from support.clients.core_client.harness import report
from support.clients.core_client.versions import PARTS

if __name__ == "__main__":
    for part in PARTS[sys.argv[4]]:
        importlib.import_module(f"support.clients.core_client.{part}")  # registers its scenarios
    print(report(*sys.argv[1:4]))
