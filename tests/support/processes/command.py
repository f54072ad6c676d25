"""The installed `memservice` command, and what its processes inherit."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

MEMSERVICE = Path(sysconfig.get_path("scripts")) / "memservice"
"""The console script of the environment under test."""

KEPT = ("PATH", "LANG", "TMPDIR", "SYSTEMROOT", "COVERAGE_PROCESS_START")
"""What a child inherits: nothing that the developer's shell sets may decide what a test sees.
Without HOME, the default store is in the working directory."""


def environment(**settings: str) -> dict[str, str]:
    return {name: os.environ[name] for name in KEPT if name in os.environ} | settings
