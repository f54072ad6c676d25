"""Which tests run in the same process, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from zlib import crc32

import pytest
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

FOLDERS = ("tests/api/", "tests/contracts/", "tests/services/", "tests/unit/")
"""Folders whose files run as a whole. Their tests are short, and cost less than the fixtures and
caches of a module, which each process with tests of the file would make again."""


SLOW = 20
"""As many fast tests take as long as a slow one, on average."""


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """Distribute files of short tests as a whole, and all other tests one by one, in the order of
    the collection. Tests with the same `xdist_group` stay together."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return (
            nodeid.partition("::")[0] if group == nodeid and nodeid.startswith(FOLDERS) else group
        )


def ordered(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The order in which processes side by side take tests.

    Files, whose tests compute all the time, alternate with tests that wait for processes and
    timeouts, from the beginning to the end: so there is always something to compute. Of both, what
    takes long comes first: then all processes end at about the same time. A unit stands where the
    tests before it are the same part of all tests of its kind: by the number of units instead, the
    large files would leave the last half of the time to tests that wait. Tests that wait are mixed:
    in the order of their files, those of webhooks would be the last, and they hardly compute.
    """
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        units.setdefault(_unit(item), []).append(item)
    computing, waiting = list[list[pytest.Item]](), list[list[pytest.Item]]()
    for name, unit in units.items():
        (computing if name.endswith(".py") else waiting).append(unit)
    waiting.sort(key=lambda unit: crc32(unit[0].nodeid.encode()))
    by_position = [*_positions(computing), *_positions(waiting)]
    by_position.sort(key=lambda position: position[0])
    return [item for _, unit in by_position for item in unit]


def _positions(kind: Iterable[list[pytest.Item]]) -> list[tuple[float, list[pytest.Item]]]:
    """Each unit, and the part of the tests of its kind that come before it."""
    units = sorted(kind, key=_length, reverse=True)
    count = sum(map(len, units))
    before = accumulate(map(len, units), initial=0)
    return [(number / count, unit) for number, unit in zip(before, units, strict=False)]


def _unit(item: pytest.Item) -> str:
    """What runs together: a group, a file, or one test."""
    group = item.get_closest_marker("xdist_group")
    if group is not None:
        return f"@{group.args[0] if group.args else group.kwargs['name']}"
    return item.nodeid.partition("::")[0] if item.nodeid.startswith(FOLDERS) else item.nodeid


def _length(unit: list[pytest.Item]) -> int:
    """Roughly how long a unit takes, in fast tests."""
    return sum(map(_length_of, unit))


def _length_of(item: pytest.Item) -> int:
    mark = item.get_closest_marker("slow")
    if mark is None:
        return 1
    return int(mark.args[0]) if mark.args else SLOW
