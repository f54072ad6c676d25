"""The quick profile makes no items of tests that it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.quick import MARKER_EXPRESSION, is_quick, leaves_out


@pytest.mark.slow
class Slow: ...


@pytest.mark.every_storage
@pytest.mark.heavy
def heavy() -> None: ...


@pytest.mark.every_storage
def fast() -> None: ...


def test_slow_and_heavy_tests_are_left_out_and_others_are_not() -> None:
    assert leaves_out(Slow)
    assert leaves_out(heavy)
    assert not leaves_out(fast)
    assert not leaves_out(Path)


def test_only_runs_of_the_profile_leave_tests_out() -> None:
    assert is_quick("not heavy and not slow", ["tests"])
    assert not is_quick("not heavy", ["tests"])
    assert not is_quick("not heavy and not slow", ["tests", "tests/api/test_mcp.py::test_x"])


def test_the_script_selects_the_tests_of_the_profile(root: Path) -> None:
    script = (root / "scripts" / "test").read_text(encoding="utf-8")
    assert f'-m "{MARKER_EXPRESSION}"' in script
