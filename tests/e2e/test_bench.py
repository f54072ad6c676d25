"""`memservice bench run` with a scratch instance and the scripted model. By default, the instance
is a fork with one process that answers: it starts faster."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from click.testing import CliRunner

from memservice_bench import instance
from memservice_bench.command import bench
from memservice_bench.run import RESULTS, read_facts, read_results
from support.processes import preloaded
from support.processes.command import environment

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def fork(
    command: Sequence[str], env: Mapping[str, str], stdout: IO[bytes], stderr: int
) -> preloaded.Process:
    """As `subprocess.Popen`, for `python -m memservice …`."""
    assert stderr == subprocess.STDOUT
    settings = {name: value for name, value in env.items() if os.environ.get(name) != value}
    folder = Path(stdout.name).parent
    return preloaded.start(command[3:], folder, environment(WORKERS="1", **settings), stdout)


FORKS = SimpleNamespace(
    Popen=fork, STDOUT=subprocess.STDOUT, TimeoutExpired=subprocess.TimeoutExpired
)


@pytest.mark.parametrize(
    "processes",
    [
        pytest.param(FORKS, id="forks"),
        pytest.param(subprocess, marks=pytest.mark.heavy, id="processes"),
    ],
)
def test_a_run_grades_the_prompts_and_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: object
) -> None:
    monkeypatch.setattr(instance, "subprocess", processes)
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
