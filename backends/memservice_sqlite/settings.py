"""Settings of the SQLite storage. In a module of their own, so that registering the provider does
not import SQLAlchemy."""

from __future__ import annotations

from marshmallow import Schema, fields, validate


class SqliteSettings(Schema):
    """The settings of the `DB_` section that apply to a file, then the options of this storage
    (`DB_OPTIONS`)."""

    uri = fields.String(required=True)
    pool_class = fields.String(load_default="default", validate=validate.OneOf(("default", "null")))
    pool_size = fields.Integer(load_default=10, validate=validate.Range(min=1))
    max_overflow = fields.Integer(load_default=20, validate=validate.Range(min=0))
    pool_timeout = fields.Float(load_default=5.0, validate=validate.Range(min=0))
    synchronous = fields.String(load_default="full", validate=validate.OneOf(("full", "normal")))

    statement_timeout_seconds = fields.Float(
        load_default=30.0, validate=validate.Range(min=0, min_inclusive=False)
    )
