"""The storage in a PostgreSQL database: for many writers and several machines. Full text and
vectors are in the same database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memservice.domain.errors import ConfigurationError
from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import (
    Context,
    Settings,
    StorageProvider,
    VectorIndexProvider,
)

if TYPE_CHECKING:
    from memservice.spi.backups import Backups
    from memservice.spi.storage import Storage
    from memservice.spi.vectors import VectorIndex


def _open(settings: Settings, context: Context) -> Storage:
    from memservice_postgres.storage import open_storage

    return open_storage(settings, context.logger)


def _backups(settings: Settings, context: Context) -> Backups:
    from memservice_postgres.backups import PostgresBackups
    from memservice_postgres.storage import config_of_settings

    return PostgresBackups(config_of_settings(settings))


def _erase(settings: Settings, context: Context) -> None:
    from memservice_postgres.erasing import erase

    erase(settings)


def _own_vectors(settings: Settings, context: Context) -> VectorIndex:
    if context.storage is None or context.storage.vectors is None:
        raise ConfigurationError(
            "VECTOR_STORE_TYPE = pgvector, but DB_OPTIONS says that this database stores no "
            "vectors: remove one of the two"
        )
    return context.storage.vectors


@hookimpl
def memservice_vector_indexes() -> Iterable[VectorIndexProvider]:
    """`VECTOR_STORE_TYPE=pgvector`, as in the settings of other servers of this API, is the default
    of this storage."""
    yield VectorIndexProvider(
        name="pgvector",
        open=_own_vectors,
        needs_storage="postgres",
        capabilities=frozenset({Capability.TRANSACTIONAL}),
    )


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
        backups=_backups,
        modules=("memservice_postgres.storage", "memservice_postgres.vectors"),
    )
