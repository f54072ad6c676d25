"""The storage in a PostgreSQL database: for many writers and several machines. Full text and
vectors are in the same database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, Settings, StorageProvider

if TYPE_CHECKING:
    from memservice.spi.storage import Storage


def _open(settings: Settings, context: Context) -> Storage:
    from memservice_postgres.storage import open_storage

    return open_storage(settings, context.logger)


def _erase(settings: Settings, context: Context) -> None:
    from memservice_postgres.erasing import erase

    erase(settings)


@hookimpl
def memservice_storages() -> Iterable[StorageProvider]:
    """`DB_CONNECTION_URI=postgresql+psycopg://user:password@host/database`. Needs the extra
    `postgres`."""
    from memservice_postgres.settings import PostgresSettings

    yield StorageProvider(
        name="postgres",
        schemes=("postgresql", "postgres"),
        open=_open,
        settings=PostgresSettings,
        capabilities=frozenset({Capability.SHARED}),
        erase=_erase,
    )
