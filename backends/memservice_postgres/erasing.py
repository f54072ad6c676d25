"""Deletion of a whole store, by dropping its schema. The extension pgvector stays: all stores of a
database share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from memservice.domain.errors import ConfigurationError
from memservice_postgres import errors
from memservice_postgres.connections import ConnectionConfig, config_of

if TYPE_CHECKING:
    from memservice.spi.providers import Settings


def erase(settings: Settings) -> None:
    """Drop the schema that `settings` name, with everything in it. Raises `ConfigurationError` for
    `public`, which other software may use, and `Unavailable` if the server cannot be reached."""
    schema: str = settings["schema"]
    if schema == "public":
        raise ConfigurationError(
            "The schema public is shared with other software and cannot be dropped: set "
            "DB_SCHEMA to another schema"
        )
    config = config_of(
        settings["uri"], schema=schema, connect_seconds=settings["connect_timeout_seconds"]
    )
    try:
        _drop(config, schema)
    except psycopg.Error as error:
        meaning = errors.meaning(error, config.name)
        if meaning is None:
            raise
        raise meaning from error


def _drop(config: ConnectionConfig, schema: str) -> None:
    with config.connect() as driver:
        driver.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
