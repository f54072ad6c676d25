"""Run the migrations of an older store. Imported only if there are any: Alembic is slow to
import."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory

from memservice_sql.creating import SCHEMA_STEPS
from memservice_sql.dialect import SqlDialect
from memservice_sql.tables import metadata


def scripts() -> ScriptDirectory:
    """The history of migrations."""
    return ScriptDirectory(Path(__file__).parent / "migrations")


def upgrade(connection: sa.Connection, dialect: SqlDialect, to: str = "head") -> None:
    """Upgrade the schema to a revision, by default the newest, in the connection's transaction."""
    history = scripts()
    config = Config()
    # The migrations themselves name no database.
    config.attributes.update({step: getattr(dialect, step) for step in SCHEMA_STEPS})
    with EnvironmentContext(
        config, history, fn=lambda revision, context: history._upgrade_revs(to, revision)
    ) as environment:
        environment.configure(
            connection=connection, target_metadata=metadata, version_table_schema=dialect.schema
        )
        environment.run_migrations()
