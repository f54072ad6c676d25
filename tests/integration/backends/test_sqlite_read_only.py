"""A file on a file system that is mounted read-only: a backup on such media can be exported, and
what is refused says why."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memservice.cli.options import State
from memservice.cli.serve import _prepared
from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError, Unavailable
from memservice.services.auth.principal import Principal
from memservice.services.workspaces import get_or_create
from memservice.settings import load_settings
from memservice_sqlite import connections, dialect
from support.processes.command import MEMSERVICE
from support.stores.sqlite_store import migrated, opened


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """As docs/operations.md makes one, in a folder of its own."""
    live = tmp_path / "live.db"
    runtime = open_runtime(
        load_settings(environ={}, overrides={"DB_CONNECTION_URI": f"sqlite:///{live}"})
    )
    runtime.storage.migrate()
    get_or_create(runtime, Principal(admin=True), "w", None, None)
    (tmp_path / "media").mkdir()
    path = tmp_path / "media" / "backup.db"
    with closing(sqlite3.connect(live)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    runtime.close()
    return path


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file lay on such a file system."""
    for module in (connections, dialect):
        monkeypatch.setattr(module, "cannot_change", lambda path: True)


def test_a_read_only_file_is_read_without_creating_files(backup: Path, read_only: None) -> None:
    storage = opened(backup)
    with storage.read() as tx:
        assert tx.workspaces.locate("w").workspace is not None
    with pytest.raises(Unavailable, match="is on a read-only file system"):
        storage.write(lambda tx: tx.facts.set("a", "b"))
    storage.close()
    assert [path.name for path in backup.parent.iterdir()] == ["backup.db"]


def test_a_start_on_a_read_only_file_says_why(
    backup: Path, read_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_CONNECTION_URI", f"sqlite:///{backup}")
    state = State(None)
    with pytest.raises(
        Unavailable,
        match=r"backup\.db is on a read-only file system: .* not served",
    ):
        _prepared(state, state.settings.server, with_worker=False)
    assert [path.name for path in backup.parent.iterdir()] == ["backup.db"]


def test_a_read_only_file_with_a_write_ahead_log_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read without them, it would lack what was acknowledged."""
    storage = migrated(tmp_path / "live.db")
    storage.write(lambda tx: tx.facts.set("a", "b"))
    copied = tmp_path / "copy"
    copied.mkdir()
    for name in ("live.db", "live.db-wal"):
        shutil.copy(tmp_path / name, copied / name)
    storage.close()
    monkeypatch.setattr(connections, "cannot_change", lambda path: True)
    late = opened(copied / "live.db")
    with (
        pytest.raises(
            ConfigurationError,
            match=r"read-only file system, and its latest changes are in live\.db-wal",
        ),
        late.read() as tx,
    ):
        tx.facts.get("a")
    late.close()


@pytest.fixture
def there(backup: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs commands where the backup is really mounted so, in a space of mounts of its own."""
    media = backup.parent
    mount = f"mount --bind '{media}' '{media}' && mount -o remount,bind,ro '{media}'"

    def there(command: str, file: str = "backup.db") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", f"{mount} && {command}"],
            env={
                "PATH": f"{MEMSERVICE.parent}:{os.environ['PATH']}",
                "DB_CONNECTION_URI": f"sqlite:///{media / file}",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    if shutil.which("unshare") is None or there("true").returncode:
        pytest.skip("this system lets no test mount a folder read-only (unshare -rm)")
    return there


def test_a_backup_on_read_only_media_is_exported(
    there: Callable[..., subprocess.CompletedProcess[str]], backup: Path, tmp_path: Path
) -> None:
    exported = there("memservice export -w w w.jsonl")
    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "w.jsonl").read_bytes().startswith(b"{")
    assert [path.name for path in backup.parent.iterdir()] == ["backup.db"]


@pytest.mark.heavy
def test_what_is_refused_on_read_only_media_says_why(
    there: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    for command, file, why in (
        ("serve --port 0 --no-worker", "backup.db", "backup.db is on a read-only file system"),
        ("export -w w x.jsonl", "missing.db", "There is no file"),
    ):
        refused = there(f"memservice {command}", file)
        assert refused.returncode == 1
        assert why in refused.stderr
        assert "Traceback" not in refused.stderr
