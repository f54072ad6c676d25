"""The plugin: what it offers. Nothing that is heavy is imported until it is opened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from marshmallow import EXCLUDE, Schema, fields

from memservice.domain.errors import ConfigurationError
from memservice.hookspecs import hookimpl
from memservice.spi.capabilities import Capability
from memservice.spi.providers import Context, Settings, StorageProvider, VectorIndexProvider

if TYPE_CHECKING:
    from memservice.spi.storage import Storage
    from memservice.spi.vectors import VectorIndex

SCHEME = "toybox:///"


class StorageSettings(Schema):
    class Meta:
        unknown = EXCLUDE

    uri = fields.String(required=True)


class IndexSettings(Schema):
    class Meta:
        unknown = EXCLUDE

    url = fields.String(load_default=None, allow_none=True)


def _open_storage(settings: Settings, context: Context) -> Storage:
    from .storage import ToyStorage

    path = settings["uri"].removeprefix(SCHEME)
    if path == settings["uri"] or not path:
        raise ConfigurationError(
            f"DB_CONNECTION_URI of a toybox is {SCHEME} and the path of a file, for "
            f"instance {SCHEME}toys.db"
        )
    return ToyStorage(path)


def _open_index(settings: Settings, context: Context) -> VectorIndex:
    from .vectors import ToyVectors

    if not settings["url"]:
        raise ConfigurationError(
            "set VECTOR_STORE_URL to the file that the toybox keeps vectors in"
        )
    return ToyVectors(settings["url"])


@hookimpl
def memservice_storages() -> Iterable[StorageProvider]:
    yield StorageProvider(
        name="toybox",
        schemes=("toybox",),
        open=_open_storage,
        settings=StorageSettings,
        capabilities=frozenset({Capability.SHARED}),
    )


@hookimpl
def memservice_vector_indexes() -> Iterable[VectorIndexProvider]:
    yield VectorIndexProvider(
        name="toybox",
        open=_open_index,
        settings=IndexSettings,
        capabilities=frozenset({Capability.SHARED}),
    )
