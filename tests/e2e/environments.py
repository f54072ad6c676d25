"""Environments of published clients: built once, outside the tree, and shared by every run and every test process."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BUILD_SECONDS = 420


def cache() -> Path:
    """`MEMSERVICE_TEST_CACHE`, else `memservice` in the user's cache."""
    given = os.environ.get("MEMSERVICE_TEST_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memservice"


def client_python(name: str, requirements: Sequence[str]) -> Path:
    """The interpreter of a virtual environment that has exactly these requirements; made if it is not there yet.

    Whoever comes first builds, the others wait. A build that did not end is thrown away.
    """
    recipe = "\n".join([sys.version, *sorted(requirements)])
    folder = cache() / "clients" / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    python, done = folder / "bin" / "python", folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(folder))
            _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
            done.touch()
    return python


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time. The lock ends with the process that holds it, however it ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
