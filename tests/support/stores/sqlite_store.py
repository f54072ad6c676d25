"""SQLite stores for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memservice_sqlite.settings import SqliteSettings
from memservice_sqlite.storage import SqliteStorage, open_storage


def opened(path: Path, **settings: Any) -> SqliteStorage:
    """The store in that file, as it is. Commits do not wait for the disk."""
    return open_storage(
        SqliteSettings().load({"uri": f"sqlite:///{path}", "synchronous": "normal", **settings})
    )


def migrated(path: Path, **settings: Any) -> SqliteStorage:
    storage = opened(path, **settings)
    storage.migrate()
    return storage
