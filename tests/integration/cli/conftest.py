"""Running `memservice` as an operator does: the whole command, in a directory of its own."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli.called import call, needs_a_process
from support.processes import preloaded

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def memservice(tmp_path: Path) -> Run:
    """`memservice("db", "upgrade", DB_SYNCHRONOUS="normal")`, in `tmp_path`: in the process of the
    test where it leaves nothing there. No command may show a traceback."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        run_it = preloaded.run if needs_a_process(arguments, settings) else call
        result = run_it(arguments, tmp_path, settings)
        assert "Traceback" not in result.stderr, result.stderr
        return result

    return run


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """`install("name", source)` makes a plugin as an installed distribution has it; returns the
    PYTHONPATH that shows it."""
    folder = tmp_path_factory.mktemp("site")

    def make(name: str, source: str) -> str:
        (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(f"[memservice]\n{name} = {name}\n", encoding="utf-8")
        return str(folder)

    return make
