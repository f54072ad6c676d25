"""Where a model is: the settings that every one of these plugins is opened with."""

from __future__ import annotations

from marshmallow import EXCLUDE, Schema, fields, validate

MAX_SECONDS = 24 * 3600.0


class ConnectionSettings(Schema):
    """`api_key`, `base_url` (None: the provider's own), `timeout` (seconds of one call),
    `extra_body` (merged into the body of each call, stronger than what the plugin says),
    `extra_headers` and `extra_query` (sent with each call, stronger than the plugin's)."""

    class Meta:
        unknown = EXCLUDE

    api_key = fields.String(load_default=None, allow_none=True)
    base_url = fields.String(load_default=None, allow_none=True)
    timeout = fields.Float(
        load_default=None, allow_none=True, validate=validate.Range(min=0.1, max=MAX_SECONDS)
    )
    extra_body = fields.Dict(keys=fields.String(), load_default=dict)
    extra_headers = fields.Dict(keys=fields.String(), load_default=dict)
    extra_query = fields.Dict(keys=fields.String(), load_default=dict)


class EmbeddingSettings(ConnectionSettings):
    """For an embedder, besides: `model` (None: the provider's default), `vector_dimensions` (for
    requests to models with a selectable dimension), `dimensions_mode` (`auto`, `always`, `never`:
    whether requests have it), `encoding_format_mode` (`auto`, `float`, `base64`), `max_batch_size`
    (texts in one call), `max_tokens_per_request`, `max_input_tokens` (longer texts are cut),
    `query_seconds` (time limit of a query's vector), `max_concurrent_embeddings` (calls at once,
    queries not counted)."""

    model = fields.String(load_default=None, allow_none=True)
    vector_dimensions = fields.Integer(load_default=1536, validate=validate.Range(min=1))
    dimensions_mode = fields.String(
        load_default="auto", validate=validate.OneOf(("auto", "always", "never"))
    )
    encoding_format_mode = fields.String(
        load_default="auto", validate=validate.OneOf(("auto", "float", "base64"))
    )
    max_batch_size = fields.Integer(
        load_default=None, allow_none=True, validate=validate.Range(min=1)
    )
    max_tokens_per_request = fields.Integer(load_default=300_000, validate=validate.Range(min=1))
    max_input_tokens = fields.Integer(load_default=8192, validate=validate.Range(min=1))
    query_seconds = fields.Float(
        load_default=None, allow_none=True, validate=validate.Range(min=0.01, max=MAX_SECONDS)
    )
    max_concurrent_embeddings = fields.Integer(load_default=10, validate=validate.Range(min=1))
