"""Run the migrations. Imported only if there is something to migrate: Alembic is slow to import."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory

from memservice_sql.dialect import SqlDialect
from memservice_sql.tables import metadata


def scripts() -> ScriptDirectory:
    """The history of migrations."""
    return ScriptDirectory(Path(__file__).parent / "migrations")


def upgrade(connection: sa.Connection, dialect: SqlDialect, to: str = "head") -> None:
    """Upgrade the schema to a revision, by default the newest, in the connection's transaction."""
    history = scripts()
    config = Config()
    # Creates the objects that only one database has: the migrations themselves name no database.
    config.attributes["create_indexes"] = dialect.create_indexes
    config.attributes["copy_metadata"] = dialect.copy_metadata
    config.attributes["spread_merges"] = dialect.spread_merges
    config.attributes["sample_texts"] = dialect.sample_texts
    config.attributes["order_texts"] = dialect.order_texts
    with EnvironmentContext(
        config, history, fn=lambda revision, context: history._upgrade_revs(to, revision)
    ) as environment:
        environment.configure(
            connection=connection, target_metadata=metadata, version_table_schema=dialect.schema
        )
        environment.run_migrations()
