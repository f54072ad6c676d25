"""Settings of the PostgreSQL storage. Apart from the rest, so that offering it imports neither
SQLAlchemy nor the driver."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

_POSITIVE = validate.Range(min=0, min_inclusive=False)


class PostgresSettings(Schema):
    """The `DB_` section, and below it what only this storage knows (`DB_OPTIONS`)."""

    uri = fields.String(required=True)
    schema = fields.String(
        load_default="public", validate=validate.Regexp(r"^[a-z_][a-z0-9_]{0,62}$")
    )
    pool_class = fields.String(load_default="default", validate=validate.OneOf(("default", "null")))
    pool_pre_ping = fields.Boolean(load_default=True)
    pool_size = fields.Integer(load_default=10, validate=validate.Range(min=1))
    max_overflow = fields.Integer(load_default=20, validate=validate.Range(min=0))
    pool_timeout = fields.Float(load_default=5.0, validate=validate.Range(min=0))
    pool_recycle = fields.Float(load_default=300.0, validate=validate.Range(min=1))
    pool_use_lifo = fields.Boolean(load_default=True)
    connect_timeout_seconds = fields.Float(load_default=2.0, validate=_POSITIVE)
    synchronous = fields.String(load_default="full", validate=validate.OneOf(("full", "normal")))

    statement_timeout_seconds = fields.Float(load_default=30.0, validate=_POSITIVE)
    prepared_statements = fields.Boolean(load_default=True)
    """False behind a connection pooler that cannot keep them (pgbouncer before 1.21 in transaction
    mode)."""
    vectors = fields.Boolean(load_default=True)
    """False: no vectors in this database, and no pgvector needed; `VECTOR_STORE_TYPE` then names
    another place."""
    half_precision = fields.Boolean(load_default=False)
    """True: vector indexes hold 16-bit numbers. Half the size; the best hits are scored again
    exactly."""
    index_memory_mb = fields.Integer(load_default=2_560, validate=validate.Range(min=64))
    """The most memory, of the database server, that building a vector index may take."""
