"""`memservice erasures`, on a store with an erased session and an erased workspace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from memservice.cli import cli
from memservice.cli.operator import OPERATOR
from memservice.compose import open_runtime
from memservice.domain.errors import Conflict, NotFound
from memservice.plugins import load_plugins
from memservice.services import deletion, messages
from memservice.services.messages import Draft
from memservice.settings import load_settings
from memservice.worker.polling import Worker

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    environ = {"DB_CONNECTION_URI": f"sqlite:///{tmp_path}/memservice.db"}
    settings = load_settings(environ=environ, cwd=tmp_path)
    rt = open_runtime(settings, plugins=load_plugins(settings))
    rt.storage.migrate()
    for workspace in ("kept", "old"):
        messages.create(rt, OPERATOR, workspace, "talk", [Draft("The secret is Oslo.", "alice")])
    deletion.delete_session(rt, OPERATOR, "kept", "talk")
    deletion.delete_workspace(rt, OPERATOR, "old", with_sessions=True)
    Worker(rt).run_until_idle(30)
    runner = CliRunner()
    yield lambda *arguments: runner.invoke(cli, ["erasures", *arguments], env=environ)
    rt.close()


def test_receipts_outlive_their_workspaces(run: Run) -> None:
    head, newest, oldest = run("list").output.splitlines()
    assert head.split()[:5] == ["ID", "STATE", "KIND", "WORKSPACE", "TARGET"]
    assert newest.split()[1:6] == ["done", "workspace", "old", "old", "command"]
    assert oldest.split()[1:5] == ["done", "session", "kept", "talk"]
    (only,) = run("list", "--workspace", "kept").output.splitlines()[1:]
    assert only.split() == oldest.split()


def test_a_receipt_has_counts_and_no_text(run: Run) -> None:
    uid = run("list").output.splitlines()[2].split()[0]
    answer = run("show", uid)
    receipt = json.loads(answer.output)
    assert (receipt["id"], receipt["state"], receipt["counts"]["messages"]) == (uid, "done", 1)
    assert "Oslo" not in answer.output
    assert isinstance(run("show", "nope").exception, NotFound)


def test_an_import_leaves_out_what_was_erased(tmp_path: Path) -> None:
    environ = {"DB_CONNECTION_URI": f"sqlite:///{tmp_path}/memservice.db"}
    settings = load_settings(environ=environ, cwd=tmp_path)
    rt = open_runtime(settings, plugins=load_plugins(settings))
    rt.storage.migrate()
    for session in ("talk", "other"):
        messages.create(rt, OPERATOR, "w", session, [Draft("The secret is Oslo.", "alice")])
    runner = CliRunner()

    def memservice(*arguments: str) -> Result:
        return runner.invoke(cli, arguments, env=environ)

    file = str(tmp_path / "w.jsonl")
    assert memservice("export", "-w", "w", "--without-vectors", file).exit_code == 0
    deletion.delete_session(rt, OPERATOR, "w", "talk")
    Worker(rt).run_until_idle(30)
    done = memservice("import", file)
    assert "stored nothing new; left out" in done.output
    assert "(--no-respect-erasures imports them)" in done.output
    done = memservice("import", "--no-respect-erasures", file)
    assert "1 sessions" in done.output
    assert "left out" not in done.output
    deletion.delete_workspace(rt, OPERATOR, "w", with_sessions=True)
    Worker(rt).run_until_idle(30)
    refused = memservice("import", file)
    assert isinstance(refused.exception, Conflict)
    assert "--no-respect-erasures" in str(refused.exception)
    rt.close()


def test_receipts_are_exported_as_lines(run: Run) -> None:
    lines = [json.loads(line) for line in run("export").output.splitlines()]
    assert [line["kind"] for line in lines] == ["workspace", "session"]
    (line,) = run("export", "-w", "old").output.splitlines()
    assert json.loads(line) == lines[0]
