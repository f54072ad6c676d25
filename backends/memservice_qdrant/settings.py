"""Settings of the Qdrant vector index. Apart from the rest, so that offering it imports no
client."""

from __future__ import annotations

from marshmallow import Schema, fields, validate


class QdrantSettings(Schema):
    """The `VECTOR_STORE_` section, and below it what only this index knows
    (`VECTOR_STORE_OPTIONS`)."""

    url = fields.String(load_default=None, allow_none=True)
    """`:memory:` keeps vectors in the process, as long as it lives: for tests."""
    api_key = fields.String(load_default=None, allow_none=True)
    namespace = fields.String(load_default=None, allow_none=True)

    timeout_seconds = fields.Integer(load_default=10, validate=validate.Range(min=1))
    """Of one request. Queries are given less by the service."""
    on_disk = fields.Boolean(load_default=False)
    """True: the server keeps vectors on its disk in place of its memory. Counts when a collection
    is made."""
    replication_factor = fields.Integer(
        load_default=None, allow_none=True, validate=validate.Range(min=1)
    )
    """In a cluster: copies of each collection. Counts when it is made; unset: the server's own
    default."""
    shard_number = fields.Integer(
        load_default=None, allow_none=True, validate=validate.Range(min=1)
    )
