"""The CPU time of each test: where a run of the tests spends its time.

    MEMSERVICE_TEST_PROFILE=FOLDER scripts/test
    python tests/support/cpu_profile.py FOLDER [--by folder|file|test] [--number 30]

Each process of the run writes one file into the folder. CPU time, unlike the durations that pytest
reports, does not depend on what else a machine computes. It includes the processes that a test
has started and waited for, but not a server that outlives it: PostgreSQL, Redis, and the processes
that others are forked from.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

VARIABLE = "MEMSERVICE_TEST_PROFILE"


class CpuProfile:
    """A plugin of pytest that measures each test together with the fixtures it sets up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tests: dict[str, tuple[float, float, float]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = _clock()
        try:
            return (yield)
        finally:
            own, children, wall = (
                round(now - then, 4) for now, then in zip(_clock(), before, strict=True)
            )
            self._tests[item.nodeid] = (own, children, wall)

    def pytest_sessionfinish(self) -> None:
        name = os.environ.get("PYTEST_XDIST_WORKER", "main")
        (self._folder / f"{name}.json").write_text(json.dumps(self._tests))


def _clock() -> tuple[float, float, float]:
    """CPU time of this process, CPU time of its ended children, and wall time, in seconds."""
    spent = os.times()
    return (
        spent.user + spent.system,
        spent.children_user + spent.children_system,
        time.perf_counter(),
    )


def table(folder: Path, by: str, number: int) -> list[str]:
    """The groups of tests that took most CPU time, and their sum."""
    sums: dict[str, list[float]] = {}
    for file in sorted(folder.glob("*.json")):
        for test, (own, children, wall) in json.loads(file.read_text()).items():
            path = test.partition("::")[0]
            group = {"test": test, "file": path, "folder": path.rpartition("/")[0]}[by]
            for key in ("all", group):
                row = sums.setdefault(key, [0.0, 0.0, 0.0, 0])
                for column, value in enumerate((own, children, wall, 1)):
                    row[column] += value
    rows = sorted(sums.items(), key=lambda entry: -(entry[1][0] + entry[1][1]))
    return [
        "  CPU s   of it children   wall s   tests",
        *(
            f"{own + children:7.1f} {children:15.1f} {wall:8.1f} {count:7.0f}   {name}"
            for name, (own, children, wall, count) in rows[: number + 1]
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the CPU times that a run has written.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--by", choices=("folder", "file", "test"), default="file")
    parser.add_argument("--number", type=int, default=30, help="rows to print")
    options = parser.parse_args()
    print("\n".join(table(options.folder, options.by, options.number)))
