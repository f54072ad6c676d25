"""The two faces of a published Python client, plain and asynchronous, as parameters of tests."""

from __future__ import annotations

import pytest


def faces(group: str) -> list[object]:
    """Both faces. The tests of one face run in one process, which runs the client once.

    The requests are the same, so by default only the plain face runs, on the servers that other
    clients use, too.
    """
    return [
        pytest.param("sync", marks=pytest.mark.xdist_group("served")),
        pytest.param("async", marks=[pytest.mark.xdist_group(f"{group}-async"), pytest.mark.heavy]),
    ]
