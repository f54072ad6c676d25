"""Random histories with erasures and interruptions: what was erased is nowhere, and everything
else is as if it had never been said."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.erasure.checking import INDEXES, Check
from support.erasure.plans import ACTIONS, Plan, Step
from support.receiver import Receiver

STEPS = 36
NUMBERS = st.integers(0, 999)
FIRST_SEED = int(os.environ.get("FIRST_SEED", "100"))
"""Of the histories of `test_many_histories`: each run can have others."""
HISTORIES = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=5, max_size=STEPS)


@pytest.mark.slow
@pytest.mark.every_storage("sqlite")
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.heavy) for n in (1, 2))])
def test_what_was_erased_is_nowhere(storage_name: str, tmp_path: Path, seed: int) -> None:
    Check(tmp_path, storage_name).run(Plan.at_random(seed, STEPS), seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "index",
    [name if name == "fake" else pytest.param(name, marks=pytest.mark.heavy) for name in INDEXES],
)
def test_an_index_outside_the_storage(tmp_path: Path, index: str) -> None:
    Check(tmp_path, "memory", index).run(Plan.at_random(7, STEPS), 7)


@pytest.mark.slow
def test_jobs_and_deliveries(
    tmp_path: Path, redis_url: str, receiver: Receiver, process_as_before: None
) -> None:
    Check(tmp_path, "sqlite", jobs=redis_url, receiver=receiver).run(Plan.at_random(8, STEPS), 8)


@pytest.mark.slow
def test_a_history_that_waits_for_an_erasure(tmp_path: Path) -> None:
    """An export waits until a peer is erased, with all other work: the copies in the scope are made
    before the session leaves it, and so they are without the erasure."""
    bob_speaks = (ACTIONS.index("say"), 3, 0)
    then = [(ACTIONS.index(name), 0, 0) for name in ("erase_peer", "export", "leave_scope")]
    Check(tmp_path, "memory").run(Plan([bob_speaks, *then]), 0)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 5)
@given(HISTORIES, NUMBERS)
def test_any_history(steps: Sequence[Step], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Check(Path(folder), "memory").run(Plan(steps, seed), seed)


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + 30, 5))
@pytest.mark.parametrize("index", ["", *INDEXES])
@pytest.mark.parametrize("storage", ["memory", "sqlite", "postgres"])
def test_many_histories(tmp_path: Path, storage: str, index: str, first: int) -> None:
    for seed in range(first, first + 5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        Check(folder, storage, index).run(Plan.at_random(seed, STEPS), seed)
