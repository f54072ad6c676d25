"""A process is ended with SIGKILL just before, and just after, each of its commits in turn: by
default, at some of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.processes import boundaries, erasing, preloaded
from support.stores.postgres_server import VARIABLE, server

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


def ends(program: ModuleType, storage: str, folder: Path, *arguments: object) -> Any:
    """What this program found; it runs apart, because it forks."""
    settings = {}
    if storage == "postgres":
        settings[VARIABLE] = server().render_as_string(hide_password=False)
    script = f"import runpy; runpy.run_module({program.__name__!r}, run_name='__main__')"
    words = (str(folder), *map(str, arguments))
    result = preloaded.run_python(script, *words, folder=folder, settings=settings, timeout=280)
    assert result.returncode == 0, result.stderr[-4_000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("storage", "step"),
    [
        ("sqlite", 9),
        pytest.param("sqlite", 1, marks=pytest.mark.heavy),
        pytest.param("postgres", 1, marks=pytest.mark.heavy),
    ],
)
def test_a_worker_killed_at_any_commit_leaves_the_same_rows(
    tmp_path: Path, storage: str, step: int
) -> None:
    outcomes = ends(boundaries, storage, tmp_path, "working", storage, step)
    whole = outcomes["whole"]
    # Two speakers, the first of them and `bob` observing: nothing here is empty, or the comparison
    # would tell nothing.
    assert len(whole["conclusions"]) == 4 * len(boundaries.FACTS)
    assert {times for *_, times, _ in whole["conclusions"]} == {1}
    assert [kind for kind, *_ in whole["summaries"]] == ["short"]
    assert (whole["unfinished"], whole["leases"]) == (0, 0)
    # The claim, the work and the release of two units of statements and one of summaries, at least,
    # each before and after.
    assert len(outcomes["reached"]) >= 2 * 9 // step
    assert outcomes["differing"] == {}


@pytest.mark.parametrize("storage", ["sqlite", pytest.param("postgres", marks=pytest.mark.heavy)])
def test_a_server_killed_at_any_commit_loses_nothing_acknowledged(
    tmp_path: Path, storage: str
) -> None:
    outcomes = ends(boundaries, storage, tmp_path, "writing", storage, 1)
    assert outcomes["reached"] == ["kill:before:1", "kill:before:2", "kill:after:1", "kill:after:2"]
    assert outcomes["differing"] == {}
    assert [seq for _, seq, _, _ in outcomes["whole"]["messages"]] == list(
        range(1, 2 * len(boundaries.FACTS) + 1)
    )


@pytest.mark.parametrize(
    ("storage", "commits"),
    [
        ("postgres", (13,)),
        pytest.param("postgres", (4, 13), marks=pytest.mark.heavy),
        pytest.param("sqlite", (4, 13), marks=pytest.mark.heavy),
    ],
)
def test_an_erasure_killed_in_the_middle_is_finished_by_the_next_process(
    tmp_path: Path, storage: str, commits: tuple[int, ...]
) -> None:
    outcomes = ends(erasing, storage, tmp_path, storage, *commits)
    whole = outcomes.pop("")
    assert whole["left"] == []
    assert whole["erasures"] == [["ada", "done"]]
    assert [content for *_, content, _ in whole["messages"]] == [
        fact.format("goats") for fact in erasing.FACTS
    ]
    assert whole["conclusions"]
    assert {observer for observer, *_ in whole["conclusions"]} == {"bot"}
    assert len(outcomes) == 2 * len(commits)
    assert {point: result for point, result in outcomes.items() if result != whole} == {}
