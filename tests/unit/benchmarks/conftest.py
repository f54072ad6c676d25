"""The benchmarks are no installed package: they are imported from the repository, whatever else is
called `benchmarks`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

# The root does not stay on the path: the metadata that a build leaves there would be taken for that
# of the installation.
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
importlib.import_module("benchmarks")
del sys.path[0]
