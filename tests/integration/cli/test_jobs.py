"""`memservice jobs`, on a store whose work failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from integration.cli.conftest import Run
from memservice.cli import cli
from memservice.compose import open_runtime
from memservice.domain.errors import MemserviceError
from memservice.plugins import load_plugins
from memservice.services import messages
from memservice.services.auth.principal import Principal
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.worker.polling import Worker
from support.pipeline.fakes import ScriptedReasoner

NO = "RuntimeError: what alice said, verbatim"


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


class Store:
    """A store in which a test says things and works on them, and on which it runs commands, all in
    this process."""

    def __init__(self, folder: Path, **settings_: str) -> None:
        self.environ = {"DB_CONNECTION_URI": f"sqlite:///{folder}/memservice.db"}
        defaults = {"REASONER": "scripted", "WORKER_MAX_ATTEMPTS": "1", **settings_}
        settings = load_settings(environ={**self.environ, **defaults}, cwd=folder)
        self.reasoner = ScriptedReasoner()
        self.rt = open_runtime(settings, plugins=load_plugins(settings, extra=[self.reasoner]))
        self.rt.storage.migrate()

    def say(self, session: str, *content: str) -> None:
        messages.create(
            self.rt, Principal(admin=True), "w", session, [Draft(text, "alice") for text in content]
        )

    def work(self, *, fails: bool = False) -> None:
        def no(request: object) -> None:
            raise RuntimeError("what alice said, verbatim")

        self.reasoner.act = no if fails else None
        Worker(self.rt).run_until_idle(30)

    def __call__(self, *arguments: str) -> Done:
        """`store("list")` is `memservice jobs list`."""
        result = CliRunner().invoke(cli, ["jobs", *arguments], env=self.environ)
        if isinstance(result.exception, MemserviceError):  # as `main` tells it
            return Done(1, result.stdout, f"memservice: {result.exception}")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.chdir(tmp_path)
    opened = Store(tmp_path)
    yield opened
    opened.rt.close()


def listed(store: Store, *options: str) -> list[dict[str, Any]]:
    result = store("list", "--json", *options)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_failed_tasks_are_listed_without_and_shown_with_their_error_text(store: Store) -> None:
    store.say("s", "I like tea.")
    store.work(fails=True)
    (failed,) = listed(store, "--state", "failed")
    table = store("list", "--workspace", "w").stdout.splitlines()
    assert table[0].split() == [
        "ID",
        "KIND",
        "STATE",
        "DUE",
        "TRIES",
        "UNIT",
        "WORKSPACE",
        "SESSION",
        "ABOUT",
        "CREATED",
        "AT",
        "ERROR",
    ]
    assert table[1].split()[:9] == [
        failed["id"],
        "representation",
        "failed",
        "-",
        "1",
        failed["unit"],
        "w",
        "s",
        "alice",
    ]
    assert table[1].split()[-1] == "RuntimeError"
    assert "verbatim" not in table[1]
    output = store("show", failed["id"]).stdout
    assert NO in output
    assert json.loads(store("show", failed["id"], "--json").stdout) == failed
    assert (failed["workspace"], failed["session"], failed["observed"], failed["attempts"]) == (
        "w",
        "s",
        "alice",
        1,
    )


def test_a_retried_task_becomes_pending_and_succeeds(store: Store, memservice: Run) -> None:
    store.say("s", "I like tea.")
    store.work(fails=True)
    (failed,) = listed(store, "--state", "failed")
    assert store("retry", failed["id"]).stdout == "1 will be retried\n"
    (pending,) = listed(store, "--state", "pending", "--kind", "representation")
    assert (pending["id"], pending["attempts"]) == (failed["id"], 0)
    assert memservice("worker", "--burst", REASONER="extractive").returncode == 0
    (done,) = listed(store, "--state", "done", "--kind", "representation")
    assert done["outcome"]["stored"] == 1


def test_a_task_that_is_due_later_waits_until_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path, WORKER_MAX_ATTEMPTS="2")
    store.say("s", "I like tea.")
    store.work(fails=True)
    (job,) = listed(store, "--state", "waiting")
    assert (job["state"], job["attempts"]) == ("waiting", 1)
    assert listed(store, "--state", "pending") == [job]
    line = store("list").stdout.splitlines()[1].split()
    assert line[2:6] == ["waiting", job["not_before"], "1", job["unit"]]
    refused = store("purge", "--state", "waiting")
    assert refused.returncode == 2
    store.rt.close()


def test_a_done_task_is_listed_without_its_former_error(tmp_path: Path) -> None:
    store = Store(tmp_path, WORKER_MAX_ATTEMPTS="2", WORKER_RETRY_BACKOFF_SECONDS="0")
    store.say("s", "I like tea.")
    calls = iter([RuntimeError("once"), None])

    def once(request: object) -> None:
        error = next(calls, None)
        if error is not None:
            raise error

    store.reasoner.act = once
    Worker(store.rt).run_until_idle(30)
    (line,) = store("list", "--kind", "representation").stdout.splitlines()[1:]
    assert line.split()[2] == "done"
    assert "RuntimeError" not in line
    store.rt.close()


def test_a_task_without_results_shows_its_outcome(store: Store) -> None:
    store.say("s", "  ")
    store.work()
    (done,) = listed(store, "--kind", "representation")
    assert done["state"] == "done"
    assert (done["outcome"]["statements"], done["outcome"]["derived_nothing"]) == (0, 1)
    assert "derived_nothing 1" in store("show", done["id"]).stdout


def test_a_cancelled_task_is_not_processed_until_it_is_retried(store: Store) -> None:
    store.say("s", "I like tea.")
    store.say("t", "I own a boat.")
    pending = listed(store, "--state", "pending")
    unit = next(job["unit"] for job in pending if job["session"] == "s")
    assert store("cancel", "--unit", unit).stdout == "1 cancelled\n"
    store.work()
    states = {
        job["session"]: (job["state"], job["error"])
        for job in listed(store, "--kind", "representation")
    }
    assert states == {"s": ("failed", "Cancelled: by an operator"), "t": ("done", None)}
    assert store("retry", "--workspace", "w").stdout == "1 will be retried\n"
    store.work()
    assert {job["state"] for job in listed(store, "--kind", "representation")} == {"done"}


def test_ended_tasks_are_purged_by_age_and_state(store: Store) -> None:
    store.say("s", "I like tea.")
    store.work(fails=True)
    store.say("t", "I own a boat.")
    store.work()
    assert store("purge", "--older-than", "1h").stdout == "0 erased\n"
    assert store("purge", "--all").stdout == "1 erased\n"
    assert {job["state"] for job in listed(store, "--kind", "representation")} == {"done"}
    assert store("purge", "--state", "done", "--workspace", "w").stdout == "1 erased\n"
    assert listed(store, "--kind", "representation") == []


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("show", "nobody"), 1, "Task nobody not found"),
        (("retry", "nobody"), 1, "Task nobody not found among the failed ones"),
        (("cancel", "nobody"), 1, "Task nobody not found among the pending ones"),
        (("list", "--workspace", "nowhere"), 1, "Workspace nowhere not found"),
        (("list", "--kind", "thinking"), 2, "'thinking' is not one of 'representation', 'summary'"),
        (("retry",), 2, "Select tasks by ID, by options, or with --all."),
        (("cancel", "x", "--all"), 2, "Select tasks"),
        (("purge",), 2, "Select tasks"),
        (("purge", "--older-than", "soon"), 2, "'soon' is not a duration"),
    ],
)
def test_mistakes_are_reported(
    store: Store, arguments: tuple[str, ...], status: int, message: str
) -> None:
    result = store(*arguments)
    assert result.returncode == status
    assert message in " ".join(result.stderr.split())
