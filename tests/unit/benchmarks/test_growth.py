"""The benchmark of growth: what it stores, measures and reports."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.load import __main__ as load
from benchmarks.load import data, growth, in_process
from benchmarks.load.measuring import Cell


def _cell(name: str, server: float, database: float | None = None) -> Cell:
    return Cell(name, 1, 10, {}, 1.0, 1.0, 1.0, 1.0, server, database)


POINTS = [
    growth.Point(1_000, [_cell("floor", 0.1), _cell("read", 1.0, 1.0), _cell("write", 5.0)]),
    growth.Point(10_000, [_cell("floor", 0.1), _cell("read", 2.0, 3.0), _cell("write", 5.0)]),
]


@pytest.mark.slow
@pytest.mark.parametrize("batch", [10, pytest.param(data.BATCH, marks=pytest.mark.heavy)])
def test_each_size_is_measured_on_a_store_that_grows(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
) -> None:
    monkeypatch.setattr(growth, "BATCH", batch)
    monkeypatch.setattr(growth, "CONCLUSIONS", batch * growth.CONCLUSIONS // 100)
    saved, chart = tmp_path / "growth.json", tmp_path / "growth.svg"
    sizes = [11 * batch, 13 * batch]
    command = ["growth", "--db", f"sqlite:///{tmp_path}/growth.db"]
    command += ["--sizes", ",".join(map(str, reversed(sizes)))]
    command += ["--requests", "1", "--rounds", "1", "--save", str(saved), "--chart", str(chart)]
    load.main(command)
    _, points = json.loads(saved.read_text())
    assert [point["messages"] for point in points] == sizes
    for point in points:
        assert {cell["requests"] for cell in point["cells"]} == {1}
        assert [cell["errors"] for cell in point["cells"]] == [{}] * len(point["cells"])
    table = capsys.readouterr().out
    for cell in points[0]["cells"][1:]:
        assert f"| {cell['scenario']} |" in table
        assert f"{cell['scenario']}: " in chart.read_text()
    with pytest.raises(ValueError, match="use an empty one"):
        load.main(command)


def test_a_tenth_of_the_messages_is_in_the_large_session() -> None:
    sessions = Counter(map(growth.session_of, range(1_000)))
    assert sessions[growth.LARGE] == 99  # none of the first ten batches
    assert sessions[growth.FIXED] == 10
    assert max(number for name, number in sessions.items() if name.startswith("other")) <= 12


@pytest.mark.slow
def test_batches_continue_where_the_size_before_ended() -> None:
    whole = list(growth.batches(0, 1_400, "/w"))
    assert whole == [*growth.batches(0, 1_100, "/w"), *growth.batches(1_100, 1_400, "/w")]
    assert len(whole) == 14


@pytest.mark.parametrize("sizes", [[1_000], [1_150, 2_000]])
def test_a_size_that_does_not_fit_is_rejected(sizes: list[int]) -> None:
    def application(environment: dict[str, Any], start: Any) -> list[bytes]:
        raise AssertionError("nothing is requested")

    with pytest.raises(ValueError, match="multiples of 100 above 1000"):
        growth.measure(application, application, None, sizes, in_process.Plan())


def test_growth_is_the_last_cost_divided_by_the_first() -> None:
    lines = growth.table(POINTS).splitlines()
    assert lines[0] == "| request | 1,000 | 10,000 | growth |"
    assert lines[2:] == ["| read | 2.00 | 5.00 | 2.5 |", "| write | 5.00 | 5.00 | 1.0 |"]


def test_the_chart_has_a_line_for_each_request() -> None:
    root = ElementTree.fromstring(growth.chart(POINTS, "sqlite"))
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(lines) == 2
    assert "read: 2.00 → 5.00" in texts
    # Equal last costs: the labels are below each other.
    ends = [float(e.get("y", "0")) for e in root.iter() if e.text and "→" in e.text]
    assert abs(ends[1] - ends[0]) >= 14
