"""`memservice import-history`: the command, beside the tests of the formats
(`tests/services/test_histories.py`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration.cli.conftest import Run
from memservice.services.transfer.histories.formats import FORMATS
from support.services import histories

pytestmark = pytest.mark.e2e


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "chat.txt"
    path.write_text(histories.TEXTS["chat"], encoding="utf-8")
    return path


def test_a_dry_run_stores_nothing(memservice: Run, tmp_path: Path, file: Path) -> None:
    result = memservice("import-history", "chat", file.name, "-w", "w", "--dry-run")
    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        "w: read 3 peers, 2 sessions, 3 messages; dry run: nothing was stored\n"
    )
    assert list(tmp_path.iterdir()) == [file]


def test_a_history_is_imported_and_worked_on(memservice: Run, file: Path) -> None:
    result = memservice("import-history", "chat", file.name, "-w", "w")
    assert result.returncode == 0, result.stderr
    assert "stored 3 peers, 2 sessions, 3 messages" in result.stdout
    assert "stored nothing new" in memservice("import-history", "chat", file.name, "-w", "w").stdout
    assert memservice("worker", "--burst").returncode == 0
    result = memservice("show", "peer", "maria", "--json")
    (conclusion,) = json.loads(result.stdout)["conclusions"]
    assert conclusion["content"] == "I moved to Porto."
    assert json.loads(memservice("show", "peer", "bot", "--json").stdout)["conclusions"] == []


def test_a_damaged_file_is_named_with_its_line(memservice: Run, file: Path) -> None:
    file.write_text(histories.TEXTS["chat"] + '{"peer": "x"}\n', encoding="utf-8")
    result = memservice("import-history", "chat", file.name, "-w", "w")
    assert (result.returncode, result.stdout) == (1, "")
    assert "chat.txt: line 4 has no `content`; nothing was stored" in result.stderr


def test_mistakes(memservice: Run, file: Path) -> None:
    for arguments, problem in (
        (("chat", "absent", "-w", "w"), "there is no file absent"),
        (("chat", file.name), "Missing option '--workspace'"),
        (("chat", file.name, "-w", "not valid"), "cannot be the id of a workspace"),
        (("word", file.name, "-w", "w"), ", ".join(repr(name) for name in FORMATS)),
        (("claude", file.name, "-w", "w"), "must be a list of conversations"),
    ):
        result = memservice("import-history", *arguments)
        assert result.returncode != 0, arguments
        assert problem in result.stderr
