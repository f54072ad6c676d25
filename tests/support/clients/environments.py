"""Environments of published clients: built once, outside the tree, and shared by every run and
every test process."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BUILD_SECONDS = 420
TESTS = Path(__file__).resolve().parents[2]
NO_CERTIFICATES = {"SSL_CERT_DIR": str(Path(__file__).parent)}
"""For a process that speaks HTTP to this machine only, without encryption: a folder in which there
are no certificates. Each of its clients would read those of all authorities, which takes 40 ms of
CPU, and a run of scenarios makes two clients for each."""


def cache() -> Path:
    """`MEMSERVICE_TEST_CACHE`, else `memservice` in the user's cache."""
    folder = os.environ.get("MEMSERVICE_TEST_CACHE")
    return (
        Path(folder)
        if folder
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memservice"
    )


def scenario_environment() -> dict[str, str]:
    """The variables of a program in `support.clients` that a client's interpreter runs."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(TESTS),
        "PYTHONDONTWRITEBYTECODE": "1",
        **NO_CERTIFICATES,
    }


def client_python(name: str, requirements: Sequence[str], alone: Sequence[str] = ()) -> Path:
    """The interpreter of a virtual environment that has exactly these requirements; made if it is
    not there yet.

    Those that come `alone` are installed without what they require: for a client whose bounds the
    registry in use cannot satisfy.
    """
    recipe = (
        [sys.version, *sorted(requirements), "alone", *sorted(alone)]
        if alone
        else [sys.version, *sorted(requirements)]
    )

    def build(folder: Path) -> None:
        _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        install = (*pip(folder / "bin" / "python"), "install", "--quiet")
        _run(*install, *requirements)
        if alone:
            _run(*install, "--no-deps", *alone)

    return _built(name, recipe, build) / "bin" / "python"


def pip(python: Path) -> tuple[str, ...]:
    """The command of pip for another interpreter, which needs no pip of its own: installing one
    takes four seconds of CPU."""
    return (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python))


def node_packages(name: str, requirements: Sequence[str]) -> Path:
    """A folder whose `node_modules` has exactly these packages; made if it is not there yet. Needs
    npm."""

    def build(folder: Path) -> None:
        folder.mkdir()
        (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error")
        _run("npm", "install", "--prefix", str(folder), *quiet, *requirements)

    return _built(name, sorted(requirements), build)


def _built(name: str, recipe: Sequence[str], build: Callable[[Path], None]) -> Path:
    """The folder that this recipe creates. The first process builds it, the others wait. An
    unfinished build is removed."""
    text = "\n".join(recipe)
    folder = cache() / "clients" / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    done = folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
            done.touch()
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time. The lock ends with the process that holds it, however it ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(*command: str) -> None:
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    if result.returncode:
        raise RuntimeError(
            f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}{result.stderr}"
        )
