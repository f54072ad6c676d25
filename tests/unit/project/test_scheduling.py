"""The order in which the processes of a test run take tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from support.scheduling import ordered


class FakeItem:
    def __init__(self, nodeid: str, **marks: str) -> None:
        self.nodeid, self.marks = nodeid, marks

    def get_closest_marker(self, name: str) -> SimpleNamespace | None:
        value = self.marks.get(name)
        return None if value is None else SimpleNamespace(args=(value,) if value else ())


def order(*items: Any) -> list[str]:
    return [item.nodeid.removeprefix("tests/") for item in ordered(items)]


def test_files_and_groups_stay_together() -> None:
    names = ("tests/api/test_a.py::one", "tests/e2e/test_c.py::g1", "tests/api/test_a.py::two")
    items = [FakeItem(names[0]), FakeItem(names[1], xdist_group="g"), FakeItem(names[2])]
    last = FakeItem("tests/docs/test_d.py::g2", xdist_group="g")
    assert order(*items, last) == [
        "api/test_a.py::one",
        "api/test_a.py::two",
        "e2e/test_c.py::g1",
        "docs/test_d.py::g2",
    ]


def test_files_alternate_with_tests_that_wait() -> None:
    waiting = [FakeItem(f"tests/e2e/test_e.py::w{number}") for number in range(4)]
    files = [FakeItem(f"tests/unit/test_{number}.py::f") for number in range(2)]
    kinds_in_order = [name.rpartition("::")[2][0] for name in order(*waiting, *files)]
    assert kinds_in_order == ["f", "w", "w", "f", "w", "w"]


def test_tests_that_wait_are_spread_over_the_tests_of_large_and_small_files() -> None:
    waiting = [FakeItem(f"tests/e2e/test_e.py::w{number}") for number in range(4)]
    large = [FakeItem(f"tests/unit/test_l.py::l{number}") for number in range(2)]
    small = [FakeItem(f"tests/unit/test_{number}.py::s") for number in range(2)]
    kinds_in_order = [name.rpartition("::")[2][0] for name in order(*waiting, *small, *large)]
    assert kinds_in_order == ["l", "l", "w", "w", "s", "w", "s", "w"]


def test_tests_that_wait_are_mixed_and_each_process_mixes_them_alike() -> None:
    waiting = [FakeItem(f"tests/{folder}/test_e.py::w{n}") for folder in "ab" for n in range(8)]
    mixed = order(*waiting)
    assert mixed == order(*reversed(waiting))
    assert mixed not in (sorted(mixed), sorted(mixed, reverse=True))
    assert {name[0] for name in mixed[:6]} == {name[0] for name in mixed[-6:]} == {"a", "b"}


def test_what_takes_long_comes_first() -> None:
    short, long = FakeItem("tests/api/test_s.py::a"), FakeItem("tests/api/test_l.py::a", slow="")
    many = [FakeItem(f"tests/api/test_m.py::t{number}") for number in range(2)]
    longest = FakeItem("tests/api/test_x.py::a", slow="30")
    assert order(short, *many, long, longest) == [
        "api/test_x.py::a",
        "api/test_l.py::a",
        "api/test_m.py::t0",
        "api/test_m.py::t1",
        "api/test_s.py::a",
    ]
