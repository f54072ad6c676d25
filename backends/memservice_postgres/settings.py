"""Settings of the PostgreSQL storage. In a module of their own, so that registering the provider
imports neither SQLAlchemy nor the driver."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

_POSITIVE = validate.Range(min=0, min_inclusive=False)


class PostgresSettings(Schema):
    """The `DB_` section, then the options of this storage (`DB_OPTIONS`)."""

    uri = fields.String(required=True)
    read_connection_uri = fields.String(load_default=None, allow_none=True)
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
    """Set to false behind a connection pooler without support for them (pgbouncer before 1.21 in
    transaction mode)."""
    vectors = fields.Boolean(load_default=True)
    """False: this database stores no vectors and does not need pgvector; `VECTOR_STORE_TYPE` names
    another index."""
    half_precision = fields.Boolean(load_default=False)
    """True: vector indexes use 16-bit numbers, which halves their size. The best hits are scored
    again exactly."""
    index_memory_mb = fields.Integer(load_default=2_560, validate=validate.Range(min=64))
    """Maximum memory of the database server for building a vector index."""
