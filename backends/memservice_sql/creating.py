"""Create the tables of a new store: the same as by all migrations, in a sixth of the time. Alembic
is slow to import, and its operations are slow."""

from __future__ import annotations

import sqlalchemy as sa

from memservice_sql.dialect import SqlDialect
from memservice_sql.schema_version import HEAD
from memservice_sql.tables import metadata

SCHEMA_STEPS = (
    "create_indexes",
    "copy_metadata",
    "spread_merges",
    "sample_texts",
    "order_texts",
    "index_positions",
    "index_terms",
)
"""Methods of a dialect, in the order of their migrations: they create what only one database
has."""


def create(connection: sa.Connection, dialect: SqlDialect) -> None:
    """Create everything in an empty database, in the connection's transaction."""
    for table in metadata.tables.values():
        for index in table.indexes:  # whose conditions are named for SQLite alone
            condition = index.dialect_options["sqlite"]["where"]
            index.dialect_options[connection.dialect.name]["where"] = condition
    metadata.create_all(connection, checkfirst=False)
    for step in SCHEMA_STEPS:
        getattr(dialect, step)(connection)
    # As Alembic defines it.
    versions = sa.Table(
        "alembic_version",
        sa.MetaData(),
        sa.Column("version_num", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
        schema=dialect.schema,
    )
    versions.create(connection, checkfirst=True)  # Alembic leaves an empty one after a downgrade
    connection.execute(versions.insert().values(version_num=HEAD))
