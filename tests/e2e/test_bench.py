"""`memservice bench run` with a scratch instance and the scripted model. By default, the instance
is a fork: it starts faster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memservice_bench import instance, run
from memservice_bench.command import bench
from memservice_bench.run import RESULTS, read_facts, read_results
from support.clients.server import serving

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@contextmanager
def forked(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """As `instance.served`, with one process that answers."""
    folder.mkdir(parents=True, exist_ok=True)
    with serving(folder, WORKERS="1", **settings) as server:
        yield server.url


@pytest.mark.parametrize("served", [forked, pytest.param(instance.served, marks=pytest.mark.heavy)])
def test_a_run_grades_the_prompts_and_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: Callable[..., Any]
) -> None:
    monkeypatch.setattr(run, "served", served)
    words = ["run", str(tmp_path), "--count", "1", "--limit", "8"]
    outcome = CliRunner().invoke(bench, words)
    assert outcome.exit_code == 0, outcome.output
    results = read_results(tmp_path)
    assert len(results) == 8
    assert all(result.calls == 1 and result.answer == "READY" for result in results)
    shown = [result.shown for result in results if result.shown is not None]
    assert sum(shown) / len(shown) > 0.2
    (recall, _) = read_facts(tmp_path)["en-0"]
    assert recall == 0, "the scripted model derives nothing"
    assert "facts derived:   0.0" in outcome.output
    assert json.loads((tmp_path / "run.json").read_text("utf-8"))["model"] == "scripted"

    lines = (tmp_path / RESULTS).read_text("utf-8").splitlines(keepends=True)
    (tmp_path / RESULTS).write_text("".join(lines[:5]), "utf-8")
    again = CliRunner().invoke(bench, words)
    assert "en-0: 3 to ask" in again.output
    assert [r.question for r in read_results(tmp_path)] == [r.question for r in results]

    compared = CliRunner().invoke(bench, ["compare", str(tmp_path), str(tmp_path)])
    assert "+0.0" in compared.output
