"""Settings of the Redis vector index. Apart from the rest, so that offering it imports no
client."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

_POSITIVE = validate.Range(min=0, min_inclusive=False)


class RedisSettings(Schema):
    """The `VECTOR_STORE_` section, and below it what only this index knows
    (`VECTOR_STORE_OPTIONS`)."""

    url = fields.String(load_default=None, allow_none=True)
    api_key = fields.String(load_default=None, allow_none=True)
    """The password, for those who do not want it in the URL."""
    namespace = fields.String(load_default=None, allow_none=True)

    connect_timeout_seconds = fields.Float(load_default=2.0, validate=_POSITIVE)
    timeout_seconds = fields.Float(load_default=10.0, validate=_POSITIVE)
    """Of one exchange with the server. Queries are given less by the service."""
    exact_up_to = fields.Integer(load_default=20_000, validate=validate.Range(min=0))
    """Vectors of one space up to which every query compares them all; above, it follows the
    graph."""
