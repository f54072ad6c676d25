"""Permissions of the database file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from memservice.compose import open_runtime
from memservice.settings import load_settings


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_may_read_a_new_file(tmp_path: Path) -> None:
    """Nor what lies beside it, whatever the mask of the process lets pass."""
    before = os.umask(0)
    try:
        runtime = open_runtime(
            load_settings(environ={}, overrides={"DB_CONNECTION_URI": f"sqlite:///{tmp_path}/m.db"})
        )
        runtime.storage.migrate()
        modes = {path.name: rights(path) for path in tmp_path.iterdir()}
        runtime.close()
    finally:
        os.umask(before)
    assert {"m.db", "m.db-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    assert not [name for name in modes if not name.startswith("m.db")]


def test_changed_file_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.touch()
    path.chmod(0o640)
    runtime = open_runtime(
        load_settings(environ={}, overrides={"DB_CONNECTION_URI": f"sqlite:///{path}"})
    )
    runtime.storage.migrate()
    runtime.close()
    assert rights(path) == 0o640


def test_a_file_system_without_links_is_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", link)
    runtime = open_runtime(
        load_settings(environ={}, overrides={"DB_CONNECTION_URI": f"sqlite:///{tmp_path}/m.db"})
    )
    runtime.storage.migrate()
    runtime.close()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
