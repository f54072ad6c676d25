"""`memservice backup` and `restore`, beside a server that is written to."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from integration.cli.conftest import Run
from memservice.app import create_app
from memservice.settings import load_settings
from memservice_sqlite import backups
from memservice_sqlite.connections import ConnectionConfig
from support.processes import preloaded
from support.processes.processes import Service, eventually, served
from support.processes.writers import Writer, writing

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.xdist_group("backups")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from served(tmp_path_factory.mktemp("served"), "--workers", "1")


def command(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    result = preloaded.run(arguments, folder, settings)
    assert "Traceback" not in result.stderr, result.stderr
    return result


def rows(database: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


MESSAGES = "SELECT session, seq, uid, content, tokens_through FROM messages ORDER BY session, seq"


def exported(folder: Path) -> list[str]:
    """The lines of the workspace `w`, without the header."""
    result = command(folder, "export", "-w", "w", "-")
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[1:]


@pytest.mark.slow
def test_a_backup_under_load_is_restored_and_compared(service: Service, tmp_path: Path) -> None:
    writers = [Writer(number, f"s{number}", keys=False) for number in range(3)]
    with writing(service, writers, most=400):
        eventually(lambda: all(len(writer.acknowledged) >= 20 for writer in writers))
        before = {text for writer in writers for text in writer.acknowledged}
        saved = command(service.folder, "backup", "under-load.db")
        assert saved.returncode == 0, saved.stderr
        assert "verified" in saved.stdout
        acknowledged = len(writers[0].acknowledged)
        eventually(lambda: len(writers[0].acknowledged) > acknowledged, what="writes go on")
    assert [writer.wrong for writer in writers] == [[], [], []]
    result = command(tmp_path, "restore", str(service.folder / "under-load.db"))
    assert result.returncode == 0, result.stderr
    there, here = rows(service.database, MESSAGES), rows(tmp_path / "memservice.db", MESSAGES)
    assert before <= {str(content) for _, _, _, content, _ in here}
    assert set(here) < set(there), "a state of the original, which has more by now"
    sessions = rows(tmp_path / "memservice.db", "SELECT slug, message_count FROM sessions")
    for slug, number in sessions:
        assert [seq for session, seq, *_ in here if session == slug] == list(
            range(1, int(str(number)) + 1)
        )
    assert command(tmp_path, "doctor").returncode == 0


def test_a_restored_store_exports_the_same(service: Service, tmp_path: Path) -> None:
    service.say("quiet", ("alice", "I own a tortoise named Balthazar."))
    service.drained()
    assert command(service.folder, "backup", str(tmp_path / "a.db")).returncode == 0
    (folder := tmp_path / "restored").mkdir()
    result = command(folder, "restore", str(tmp_path / "a.db"))
    assert result.returncode == 0, result.stderr
    assert exported(folder) == exported(service.folder)
    assert (folder / "memservice.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a.db").stat().st_mode & 0o777 == 0o600


def test_a_store_in_use_is_not_replaced(service: Service, tmp_path: Path) -> None:
    saved = tmp_path / "a.db"
    command(service.folder, "backup", str(saved))
    refused = command(service.folder, "restore", str(saved))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "there is a store already" in refused.stderr
    assert "--force" in refused.stderr
    refused = command(service.folder, "restore", "--force", str(saved))
    assert refused.returncode == 1
    assert "is in use: stop its servers and workers first" in refused.stderr
    service.say("quiet", ("alice", "Balthazar eats dandelions."))
    assert [path.name for path in service.folder.glob(".memservice-*")] == []


@pytest.fixture
def saved(memservice: Run, tmp_path: Path) -> Path:
    """A backup of a store of its own, which is there, too."""
    memservice("db", "upgrade")
    result = memservice("backup", "saved.db")
    assert result.returncode == 0, result.stderr
    return tmp_path / "saved.db"


def test_an_existing_store_is_replaced_by_force(
    memservice: Run, saved: Path, tmp_path: Path
) -> None:
    (tmp_path / "memservice.db").chmod(0o640)
    with closing(sqlite3.connect(tmp_path / "memservice.db")) as connection:
        connection.execute("INSERT INTO facts (name, value) VALUES ('mark', 'x')")
        connection.commit()
        shutil.copy(tmp_path / "memservice.db-wal", tmp_path / "old-wal")
    # A log that is left over from a killed server would be applied to the new file.
    shutil.copy(tmp_path / "old-wal", tmp_path / "memservice.db-wal")
    assert memservice("restore", "--force", "saved.db").returncode == 0
    assert rows(tmp_path / "memservice.db", "SELECT * FROM facts WHERE name = 'mark'") == []
    assert (tmp_path / "memservice.db").stat().st_mode & 0o777 == 0o640
    assert memservice("db", "current").returncode == 0


def test_a_damaged_store_is_replaced_by_force(memservice: Run, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "memservice.db").write_bytes(b"\0" * 10_000)
    assert memservice("restore", "--force", "saved.db").returncode == 0
    assert memservice("doctor").returncode == 0


def test_a_damaged_backup_changes_nothing(memservice: Run, saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:40_000] + b"\xff" * 9_000 + whole[49_000:]):
        saved.write_bytes(damaged)
        before = rows(tmp_path / "memservice.db", "SELECT * FROM facts")
        result = memservice("restore", "--force", "saved.db")
        assert result.returncode == 1
        assert "saved.db is damaged" in result.stderr
        assert rows(tmp_path / "memservice.db", "SELECT * FROM facts") == before


def test_what_is_no_backup_is_refused(memservice: Run, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("no backup", encoding="utf-8")
    assert "is not a backup of this storage" in memservice("restore", "--force", "text.txt").stderr
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE things (name TEXT)")
    assert "is not a backup of memservice" in memservice("restore", "--force", "other.db").stderr
    assert "there is no file absent.db" in memservice("restore", "absent.db").stderr
    with closing(sqlite3.connect(saved)) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
        newer.commit()
    result = memservice("restore", "--force", "saved.db")
    assert "schema 9999 of a newer release" in result.stderr


def test_erasures_after_the_backup_are_reported(
    memservice: Run, saved: Path, tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path}/memservice.db"
    app = create_app(load_settings(environ={"DB_CONNECTION_URI": uri}, cwd=tmp_path))
    client = app.test_client()
    body = {"messages": [{"peer_id": "bob", "content": "I have a quokka."}]}
    assert client.post("/v3/workspaces/w/sessions/s/messages", json=body).status_code == 201
    assert memservice("backup", "--force", "saved.db").returncode == 0
    assert client.delete("/v3/workspaces/w/peers/bob").status_code == 202
    app.extensions["memservice"].close()
    result = memservice("restore", "--force", "saved.db")
    assert result.returncode == 0, result.stderr
    assert "1 erasures of the replaced store are not in the backup" in result.stderr
    (receipt,) = (tmp_path / "saved.db.erasures").read_text(encoding="utf-8").splitlines()
    assert json.loads(receipt)["target_id"] == "bob"
    assert "memservice erasures repeat saved.db.erasures" in result.stderr
    repeated = memservice("erasures", "repeat", "saved.db.erasures")
    assert repeated.returncode == 0, repeated.stderr
    assert repeated.stdout.splitlines() == [
        "erasing peer bob of w",
        "1 of 1 erasures repeated",
    ]
    result = memservice("show", "peer", "-w", "w", "bob")
    assert "has no peer bob" in result.stderr
    # Restored again, the store does not have the receipt of the repetition.
    assert memservice("restore", "--force", "saved.db").returncode == 0
    (tmp_path / "saved.db.erasures").unlink()
    # Now the store and the backup have the same receipts.
    assert "erasures" not in memservice("restore", "--force", "saved.db").stderr
    assert list(tmp_path.glob("*.erasures")) == []


def test_files_that_exist_are_kept(memservice: Run, saved: Path, tmp_path: Path) -> None:
    assert "exists already" in memservice("backup", "saved.db").stderr
    assert memservice("backup", "--force", "saved.db").returncode == 0
    itself = memservice("backup", "--force", "memservice.db")
    assert "is the store itself" in itself.stderr
    assert "there is no folder" in memservice("backup", "absent/saved.db").stderr


def test_a_store_that_is_missing_is_not_created(memservice: Run, tmp_path: Path) -> None:
    result = memservice("backup", "saved.db")
    assert result.returncode == 1
    assert "There is no file" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_storage_without_backups_names_the_alternative(memservice: Run) -> None:
    result = memservice("backup", "saved.db", DB_CONNECTION_URI="memory://")
    assert "memservice export" in result.stderr


def test_writes_between_the_steps_of_a_backup_are_left_out(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite by itself starts a copy again after each commit of another process, and so never ends
    under load."""
    monkeypatch.setattr(backups, "PAGES", 10)
    steps: list[tuple[str, int]] = []
    with closing(sqlite3.connect(tmp_path / "memservice.db", isolation_level=None)) as other:

        def progress(step: str, done: int, total: int) -> None:
            other.execute(f"INSERT INTO facts (name, value) VALUES ('{len(steps)}', 'x')")
            steps.append((step, done))
            assert done <= total

        config = ConnectionConfig(tmp_path / "memservice.db")
        backups.SqliteBackups(config).save(tmp_path / "b.db", progress)
    assert len(steps) > 10
    assert steps == sorted(set(steps)), "no step was repeated"
    assert rows(tmp_path / "b.db", "SELECT * FROM facts") == rows(saved, "SELECT * FROM facts")
