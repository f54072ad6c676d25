"""The CPU times of tests are measured for each test, and summed by file and folder."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from support.cpu_profile import CpuProfile, table


@pytest.mark.slow
def test_each_test_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw7")
    profile = CpuProfile(tmp_path / "new")
    for name in ("busy", "idle"):
        item = cast(pytest.Item, SimpleNamespace(nodeid=f"tests/test_it.py::{name}"))
        running = profile.pytest_runtest_protocol(item)
        next(running)
        ends = time.process_time() + (0.2 if name == "busy" else 0.0)
        while time.process_time() < ends:
            pass
        with pytest.raises(StopIteration) as result:
            running.send("the result")
        assert result.value.value == "the result"
    profile.pytest_sessionfinish()
    measured = json.loads((tmp_path / "new" / "gw7.json").read_text())
    assert measured["tests/test_it.py::busy"][0] >= 0.15 > measured["tests/test_it.py::idle"][0]


def test_times_are_summed(tmp_path: Path) -> None:
    (tmp_path / "gw0.json").write_text(
        json.dumps({"tests/a/test_x.py::one": [1, 2, 4], "tests/a/test_y.py::two": [1, 0, 1]})
    )
    (tmp_path / "gw1.json").write_text(json.dumps({"tests/a/test_x.py::three[::]": [0.5, 0, 1]}))
    by_file = [line.split() for line in table(tmp_path, "file", 1)[1:]]
    assert by_file == [
        ["4.5", "2.0", "6.0", "3", "all"],
        ["3.5", "2.0", "5.0", "2", "tests/a/test_x.py"],
    ]
    assert [line.split()[-1] for line in table(tmp_path, "folder", 9)[1:]] == ["all", "tests/a"]
    assert len(table(tmp_path, "test", 9)) == 5
