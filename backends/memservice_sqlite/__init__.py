"""The default storage, in a SQLite file that any number of processes can share. Full text and
vectors are in the same file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, Settings, StorageProvider

if TYPE_CHECKING:
    from memservice.spi.backups import Backups
    from memservice.spi.storage import Storage


def _open(settings: Settings, context: Context) -> Storage:
    from memservice_sqlite.storage import open_storage

    return open_storage(settings)


def _backups(settings: Settings, context: Context) -> Backups:
    from memservice_sqlite.backups import SqliteBackups
    from memservice_sqlite.storage import config_of

    return SqliteBackups(config_of(settings))


@hookimpl
def memservice_storages() -> Iterable[StorageProvider]:
    """`DB_CONNECTION_URI=sqlite:///file.db` is relative to the working directory, `sqlite:////…`
    is absolute."""
    from memservice_sqlite.settings import SqliteSettings

    yield StorageProvider(
        name="sqlite",
        schemes=("sqlite",),
        open=_open,
        settings=SqliteSettings,
        capabilities=frozenset({Capability.SHARED}),
        backups=_backups,
        modules=("memservice_sqlite.storage", "memservice_sqlite.vectors"),
    )
