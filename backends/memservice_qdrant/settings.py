"""Settings of the Qdrant vector index. In a module of their own, so that registering the provider
does not import the client."""

from __future__ import annotations

from marshmallow import Schema, fields, validate


class QdrantSettings(Schema):
    """The `VECTOR_STORE_` section, then the options of this index
    (`VECTOR_STORE_OPTIONS`)."""

    url = fields.String(load_default=None, allow_none=True)
    """`:memory:` keeps vectors in the process until it ends, for tests."""
    api_key = fields.String(load_default=None, allow_none=True)
    namespace = fields.String(load_default=None, allow_none=True)

    timeout_seconds = fields.Integer(load_default=10, validate=validate.Range(min=1))
    """For one request. The service sets a shorter timeout for queries."""
    on_disk = fields.Boolean(load_default=False)
    """True: the server keeps vectors on disk and not in memory. Applies to new collections."""
    replication_factor = fields.Integer(
        load_default=None, allow_none=True, validate=validate.Range(min=1)
    )
    """Copies of each collection in a cluster. Applies to new collections; default: the
    server's."""
    shard_number = fields.Integer(
        load_default=None, allow_none=True, validate=validate.Range(min=1)
    )
