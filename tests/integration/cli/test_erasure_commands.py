"""`memservice erasures`, on a store with an erased session and an erased workspace."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memservice.cli import cli
from memservice.cli.operator import OPERATOR
from memservice.compose import open_runtime
from memservice.domain.errors import Conflict, NotFound, Unauthorised
from memservice.domain.filters import equals
from memservice.domain.records import ARCHIVED, Session
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services import deletion, messages
from memservice.services.auth.principal import Principal
from memservice.services.erasure import messages as erasures
from memservice.services.erasure import receipts, repeating
from memservice.services.messages import Draft
from memservice.services.paging import Paging
from memservice.settings import load_settings
from memservice.worker.polling import Worker

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def erased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store in which both are erased."""
    folder = tmp_path_factory.mktemp("erased")
    environ = {"DB_CONNECTION_URI": f"sqlite:///{folder}/memservice.db"}
    settings = load_settings(environ=environ, cwd=folder)
    rt = open_runtime(settings, plugins=load_plugins(settings))
    rt.storage.migrate()
    for workspace in ("kept", "old"):
        messages.create(rt, OPERATOR, workspace, "talk", [Draft("The secret is Oslo.", "alice")])
    deletion.delete_session(rt, OPERATOR, "kept", "talk")
    deletion.delete_workspace(rt, OPERATOR, "old", with_sessions=True)
    Worker(rt).run_until_idle(30)
    rt.close()
    return folder / "memservice.db"


@pytest.fixture
def run(erased: Path, tmp_path: Path) -> Run:
    environ = {"DB_CONNECTION_URI": f"sqlite:///{tmp_path}/memservice.db"}
    shutil.copy(erased, tmp_path)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(cli, ["erasures", *arguments], env=environ)


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


def test_an_import_brings_a_message_back_on_request(tmp_path: Path) -> None:
    environ = {"DB_CONNECTION_URI": f"sqlite:///{tmp_path}/memservice.db"}
    settings = load_settings(environ=environ, cwd=tmp_path)
    rt = open_runtime(settings, plugins=load_plugins(settings))
    rt.storage.migrate()
    drafts = [Draft(f"I have {n} boats.", "alice") for n in range(3)]
    rows = messages.create(rt, OPERATOR, "w", "talk", drafts)
    runner, file = CliRunner(), str(tmp_path / "w.jsonl.gz")
    assert runner.invoke(cli, ["export", "-w", "w", file], env=environ).exit_code == 0
    erasures.delete(rt, OPERATOR, "w", "talk", rows[1].uid)
    Worker(rt).run_until_idle(30)
    for option, contents in (
        ("--respect-erasures", ["I have 0 boats.", "I have 2 boats."]),
        ("--no-respect-erasures", [draft.content for draft in drafts]),
    ):
        result = runner.invoke(cli, ["import", option, file], env=environ)
        assert result.exit_code == 0, result.output
        page = messages.page(rt, OPERATOR, "w", "talk", None, Paging())
        assert [message.content for message in page.items] == contents
    rt.close()


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
    result = memservice("import", file)
    assert "stored nothing new; left out" in result.output
    assert "(--no-respect-erasures imports them)" in result.output
    result = memservice("import", "--no-respect-erasures", file)
    assert "1 sessions" in result.output
    assert "left out" not in result.output
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


def test_erasures_are_repeated_in_an_older_state_of_the_store(run: Run, tmp_path: Path) -> None:
    """`run` has erased a session and a workspace, each of which exists again, as in a backup."""
    file = tmp_path / "receipts.jsonl"
    file.write_text(run("export").output, encoding="utf-8")
    nothing = run("repeat", str(file)).output.splitlines()
    assert nothing == [
        "0 of 2 erasures repeated",
        "2 erased nothing: what they name is not in this store",
    ]
    with _store(tmp_path) as rt:
        for workspace in ("kept", "old"):
            messages.create(
                rt, OPERATOR, workspace, "talk", [Draft("The secret is Oslo.", "alice")]
            )
    _date(file, "2000-01-01T00:00:00Z")
    assert run("repeat", str(file)).output.splitlines() == [
        "0 of 2 erasures repeated",
        "2 left out: what has the id now was created after the erasure",
    ]
    _date(file, "2100-01-01T00:00:00Z")
    assert run("repeat", "--dry-run", str(file)).output.splitlines() == [
        "would erase session talk of kept",
        "would erase workspace old",
        "2 of 2 erasures repeated (dry run)",
    ]
    assert len(run("list").output.splitlines()) == 3
    assert run("repeat", str(file)).output.splitlines() == [
        "erasing session talk of kept",
        "erasing workspace old",
        "2 of 2 erasures repeated",
    ]
    with _store(tmp_path) as rt:
        Worker(rt).run_until_idle(30)
    assert b"Oslo" not in (tmp_path / "memservice.db").read_bytes()
    assert [row.split()[1] for row in run("list").output.splitlines()[1:]] == ["done"] * 4


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("not JSON", "Expecting value"),
        ("[]", "it is not a JSON object"),
        ('{"kind": "table"}', "kind 'table' is unknown; known kinds: message, peer, session"),
        ('{"kind": "peer", "workspace_id": "w"}', "target_id is missing"),
        (
            '{"kind": "peer", "workspace_id": "w", "target_id": "p", "created_at": "soon"}',
            "soon",
        ),
        (
            '{"kind": "peer", "workspace_id": "w", "target_id": "p", "options": {"mentions": "x"}}',
            "options.mentions is 'x'; known: keep, redact",
        ),
    ],
)
def test_a_damaged_file_repeats_nothing(run: Run, tmp_path: Path, line: str, reason: str) -> None:
    file = tmp_path / "receipts.jsonl"
    good = json.loads(run("export").output.splitlines()[0]) | {"created_at": "2100-01-01"}
    with _store(tmp_path) as rt:
        messages.create(rt, OPERATOR, "old", "talk", [Draft("The secret is Oslo.", "alice")])
    file.write_text(f"{json.dumps(good)}\n{line}\n", encoding="utf-8")
    answer = run("repeat", str(file))
    assert answer.exit_code == 1
    assert f"line 2 of {file} is no receipt of an erasure" in answer.output
    assert reason in answer.output
    assert len(run("list").output.splitlines()) == 3


def test_messages_and_peers_are_erased_again_and_retention_is_not(tmp_path: Path) -> None:
    with _store(tmp_path) as rt:
        rt.storage.migrate()
        (message,) = messages.create(rt, OPERATOR, "w", "s", [Draft("I like Oslo.", "alice")])
        common = {"workspace_id": "w", "created_at": "2100-01-01T00:00:00Z"}
        erasures: list[dict[str, Any]] = [
            {"kind": "message", "session_id": "s", "target_id": message.uid},
            {"kind": "messages", "target_id": "s"},
            {"kind": "peer", "target_id": "alice", "options": {"mentions": "redact"}},
            {"kind": "peer", "target_id": "bob"},
        ]
        outcomes = [
            repeating.repeat(rt, OPERATOR, repeating.parse(common | erasure))
            for erasure in erasures
        ]
        page = receipts.page_of_store(rt, OPERATOR, Paging()).items
    assert outcomes == ["repeated", "by retention", "repeated", "absent"]
    assert [(receipt.kind, dict(receipt.options)) for receipt in page] == [
        ("peer", {"mentions": "redact"}),
        ("message", {}),
    ]


def test_an_archived_session_counts_as_absent(tmp_path: Path) -> None:
    erasure = repeating.parse(
        {"kind": "session", "workspace_id": "w", "target_id": "s", "created_at": "2100-01-01"}
    )
    with _store(tmp_path) as rt:
        rt.storage.migrate()
        (message,) = messages.create(rt, OPERATOR, "w", "s", [Draft("I like Oslo.", "alice")])
        before = repeating.repeat(rt, OPERATOR, erasure, dry_run=True)
        of_session = equals(key=message.session_key)
        rt.storage.write(lambda tx: tx.rows.change(Session, of_session, state=ARCHIVED))
        after = repeating.repeat(rt, OPERATOR, erasure, dry_run=True)
    assert (before, after) == ("repeated", "absent")


def test_only_administrators_repeat_erasures(tmp_path: Path) -> None:
    erasure = repeating.parse(
        {"kind": "peer", "workspace_id": "w", "target_id": "p", "created_at": "2100-01-01"}
    )
    with _store(tmp_path) as rt:
        rt.storage.migrate()
        with pytest.raises(Unauthorised):
            repeating.repeat(rt, Principal(workspace_id="w"), erasure)


def _date(file: Path, created_at: str) -> None:
    """Give all receipts in a file this time."""
    lines = [
        json.loads(line) | {"created_at": created_at} for line in file.read_text().splitlines()
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@contextmanager
def _store(folder: Path) -> Iterator[Runtime]:
    environ = {"DB_CONNECTION_URI": f"sqlite:///{folder}/memservice.db"}
    settings = load_settings(environ=environ, cwd=folder)
    rt = open_runtime(settings, plugins=load_plugins(settings))
    yield rt
    rt.close()
