"""Functions and files stay short enough to be read at once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.project.sources import modules, nodes
from unit.project.test_names import SHELVES

pytestmark = pytest.mark.xdist_group("sources")

MAX_LINES = 60
MAX_LINES_OF_A_FILE = 700
LONGER_FILES: dict[str, str] = {}
"""File → why it may be longer."""
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_files_have_at_most_700_lines(root: Path) -> None:
    lengths = {
        file.relative_to(root).as_posix(): len(file.read_text(encoding="utf-8").splitlines())
        for shelf in (*SHELVES, "tests", "benchmarks")
        for file in (root / shelf).rglob("*.py")
    }
    assert len(lengths) > 1_000
    longer = {name for name, length in lengths.items() if length > MAX_LINES_OF_A_FILE}
    assert longer == set(LONGER_FILES), "divide a longer file by noun"
