"""Functions and files stay short enough to be read at once."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.project.sources import modules, nodes
from unit.project.test_names import SHELVES

pytestmark = pytest.mark.xdist_group("sources")

MAX_LINES = 60
MAX_LINES_OF_A_MODULE = 500
MAX_LINES_OF_TESTS = 700
"""Tests have data beside their rules."""
LONGER: dict[tuple[str, str], str] = {
    ("backends/memservice_sql/migrations/versions/v0001_everything.py", "_create_tables"): "tables",
    (
        "backends/memservice_sql/migrations/versions/v0001_everything.py",
        "_create_indexes",
    ): "tables",
    ("memservice/domain/ranking.py", "bm25_with_neighbours"): "a loop that is fast in one piece",
    ("memservice/telemetry/metrics.py", "__init__"): "declares the metrics",
    ("memservice/testing/storage/examples.py", "full_rows"): "a row of each kind",
    ("memservice/testing/storage/examples.py", "bare_rows"): "a row of each kind",
    ("memservice/testing/storage/tricky.py", "leaves"): "a table of conditions",
}
"""(File, function) → why it may be longer."""


def test_functions_have_at_most_60_lines(root: Path) -> None:
    wrong, excused = [], set()
    for shelf in SHELVES:
        for file, tree in modules(root / shelf):
            name = file.relative_to(root).as_posix()
            for node in nodes(tree):
                if not isinstance(node, ast.FunctionDef):
                    continue
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if (name, node.name) in LONGER:
                    excused.add((name, node.name))
                elif lines > MAX_LINES:
                    wrong.append(
                        f"{name}:{node.lineno}: {node.name} has {lines} lines: split it into named "
                        "steps (a table may have a row in LONGER, with the reason)"
                    )
    assert wrong == []
    assert excused == set(LONGER), "an exception that nothing needs any more"


@pytest.mark.parametrize(
    ("shelves", "most"),
    [(SHELVES, MAX_LINES_OF_A_MODULE), (("tests", "benchmarks"), MAX_LINES_OF_TESTS)],
    ids=["modules", "tests"],
)
def test_files_are_short(root: Path, shelves: Sequence[str], most: int) -> None:
    lengths = {
        file.relative_to(root).as_posix(): len(file.read_text(encoding="utf-8").splitlines())
        for shelf in shelves
        for file in (root / shelf).rglob("*.py")
    }
    assert len(lengths) > 400
    longer = {name for name, length in lengths.items() if length > most}
    assert not longer, "divide a longer file by noun"
