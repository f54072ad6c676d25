"""The benchmarks are no installed package: they are imported from the repository, whatever else is
called `benchmarks`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[3])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
