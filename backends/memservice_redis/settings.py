"""Settings of the Redis vector index. In a module of their own, so that registering the provider
does not import the client."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

_POSITIVE = validate.Range(min=0, min_inclusive=False)


class RedisSettings(Schema):
    """The `VECTOR_STORE_` section, then the options of this index
    (`VECTOR_STORE_OPTIONS`)."""

    url = fields.String(load_default=None, allow_none=True)
    api_key = fields.String(load_default=None, allow_none=True)
    """The password, as an alternative to the URL."""
    namespace = fields.String(load_default=None, allow_none=True)

    connect_timeout_seconds = fields.Float(load_default=2.0, validate=_POSITIVE)
    timeout_seconds = fields.Float(load_default=10.0, validate=_POSITIVE)
    """For one request and its answer. The service sets a shorter timeout for queries."""
    exact_up_to = fields.Integer(load_default=20_000, validate=validate.Range(min=0))
    """Maximum number of vectors in a space for exact search. Queries on a larger space use the
    graph."""
