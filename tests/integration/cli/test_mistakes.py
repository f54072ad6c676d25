"""Mistakes of operators are answered with what to do. All commands run in this process."""

from __future__ import annotations

import errno
import gzip
import os
import shlex
import sqlite3
import sys
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from memservice.app import create_app
from memservice.cli import cli, sentence
from memservice.compose import open_runtime
from memservice.domain.errors import MemserviceError
from memservice.settings import load_settings
from support.cli.mistakes import (
    AUTH,
    COMMANDS,
    NAMES,
    OTHER,
    REFUSED,
    SECRET,
    STORES,
    VALUES,
    WARNED,
    Mistake,
)
from support.process_state import restored_process


class Answer(NamedTuple):
    status: int
    text: str


def typed(command: str, environ: dict[str, str]) -> Answer:
    """The command, as `main` runs it."""
    with restored_process():
        result = CliRunner().invoke(cli, shlex.split(command), env=environ)
    text = result.output
    if isinstance(result.exception, (MemserviceError, OSError)):
        return Answer(1, f"{text}memservice: {sentence(result.exception)}")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result.exit_code, text)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, and an environment that holds no setting and no home."""
    for name in list(os.environ):
        if name not in ("PATH", "LANG", "TMPDIR") and not name.startswith(("PYTEST", "COV")):
            monkeypatch.delenv(name)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


MISTAKES = [*NAMES, *VALUES, *STORES, *COMMANDS]


def assert_answer(answer: Answer, mistake: Mistake, here: Path) -> None:
    rest = " ".join(answer.text.split())
    for part in mistake.answer:
        expected = part.replace("{here}", str(here))
        assert expected in rest, (expected, answer.text)
        rest = rest.partition(expected)[2]
    assert answer.status == mistake.status, answer.text
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_answered_with_what_to_do(here: Path, mistake: Mistake) -> None:
    environ = {name: value.replace("{here}", str(here)) for name, value in mistake.environ.items()}
    if mistake.has_store:
        assert typed("db upgrade", {}).status == 0
    for name, text in (("memservice.toml", mistake.toml), (".env", mistake.dotenv)):
        if text:
            (here / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    before = sorted(here.rglob("*"))
    assert_answer(typed(mistake.command, environ), mistake, here)
    assert [path for path in sorted(here.rglob("*")) if path not in before] == [], "nothing is made"


def test_a_store_of_a_newer_release(here: Path) -> None:
    assert typed("db upgrade", {}).status == 0
    with closing(sqlite3.connect(here / "memservice.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    newer = Mistake(
        "", "jobs list", REFUSED, ("has schema 9999 of a newer release", "Upgrade memservice")
    )
    assert_answer(typed(newer.command, {}), newer, here)


def test_a_missing_driver(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("memservice_postgres.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    command = f"{sys.executable} -m pip install 'memservice[postgres]'"
    missing = Mistake("", "db upgrade", REFUSED, ("needs psycopg, which is not", command))
    assert_answer(
        typed(missing.command, {"DB_CONNECTION_URI": "postgresql+psycopg://h/d"}), missing, here
    )


def test_a_database_that_does_not_exist() -> None:
    psycopg = pytest.importorskip("psycopg", reason="needs the extra postgres")
    from memservice_postgres.errors import meaning

    error = psycopg.errors.InvalidCatalogName('FATAL:  database "nosuch" does not exist')
    assert str(meaning(error, "nosuch on db:5432")).endswith(
        "Create it, for instance with: createdb nosuch"
    )


@pytest.mark.parametrize("file", ["memservice.toml", ".env", "memservice.db"])
def test_a_file_that_cannot_be_read(here: Path, file: str) -> None:
    (here / file).touch()
    (here / file).chmod(0)
    if os.access(here / file, os.R_OK):
        pytest.skip("needs a user whose rights are checked: this one reads every file")
    unreadable = Mistake("", "jobs list", REFUSED, (f"{{here}}/{file}", "the user"))
    assert_answer(typed("jobs list", {}), unreadable, here)


def test_a_full_disk(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed("db upgrade", {}).status == 0

    class Full(sqlite3.OperationalError):
        sqlite_errorcode = sqlite3.SQLITE_FULL

    def full(*arguments: object) -> None:
        raise Full("database or disk is full")

    monkeypatch.setattr("memservice_sqlite.backups._copy", full)
    sentences = ("b.db cannot be written: no space left on its disk; nothing was changed",)
    assert_answer(typed("backup b.db", {}), Mistake("", "", REFUSED, sentences), here)
    assert sorted(path.name for path in here.iterdir() if path.suffix != ".db") == []


def test_a_folder_that_cannot_be_written(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, *arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refused)
    sentences = ("new/pyproject.toml cannot be written: Permission denied",)
    answer = typed("plugins new reasoner plain --directory new", {})
    assert_answer(answer, Mistake("", "", REFUSED, sentences), here)


def test_a_url_of_another_page(here: Path) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/console"
            answer = typed(f"workspaces --url {url}", {})
        finally:
            server.shutdown()
            thread.join()
    sentences = (f"{url}/ has no /v3 API: is the URL right?",)
    assert_answer(answer, Mistake("", "", REFUSED, sentences), here)


def test_a_truncated_archive(here: Path) -> None:
    assert typed("db upgrade", {}).status == 0
    whole = gzip.compress(b'{"kind": "header"}\n' * 1000)
    (here / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    cut = Mistake("", "import cut.jsonl.gz", REFUSED, ("nothing was stored",))
    assert_answer(typed(cut.command, {}), cut, here)


class TestChangedSecret:
    """Keys that the former secret signed are refused, and doctor says why."""

    def test_doctor_reports_it(self, here: Path) -> None:
        assert typed("keys create --admin", AUTH).status == 0
        assert "signed with another" not in typed("doctor", AUTH).text
        mistake = Mistake(
            "",
            "doctor",
            WARNED,
            (
                "degraded keys the newest key was signed with another AUTH_JWT_SECRET",
                "set AUTH_JWT_SECRET_PREVIOUS to the former secret",
            ),
        )
        assert_answer(typed("doctor", OTHER), mistake, here)
        both = {**OTHER, "AUTH_JWT_SECRET_PREVIOUS": SECRET}
        assert "signed with another" not in typed("doctor", both).text

    def test_the_server_logs_it_once(self, here: Path, caplog: pytest.LogCaptureFixture) -> None:
        token = typed("keys create --admin", AUTH).text.split()[-1]
        settings = load_settings(environ=OTHER, cwd=here)
        runtime = open_runtime(settings)
        client = create_app(settings, runtime).test_client()
        headers = {"Authorization": f"Bearer {token}"}
        for _ in range(2):
            answer = client.post("/v3/workspaces", json={"id": "w"}, headers=headers)
            assert (answer.status_code, answer.get_json()["detail"]) == (401, "Invalid JWT")
        runtime.close()
        logged = [record.getMessage() for record in caplog.records]
        (line,) = [line for line in logged if "refused a key that another secret signed" in line]
        assert token not in line
        assert "docs/operations.md#changing-the-secret" in line


def test_there_are_as_many_mistakes_as_were_recorded() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 43
