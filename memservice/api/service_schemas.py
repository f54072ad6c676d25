"""Schemas of all operations: health and errors."""

from __future__ import annotations

from marshmallow import fields

from memservice.api.fields import List, Nested, String
from memservice.api.schema import BaseSchema


class Health(BaseSchema):
    status = String(required=True)


class ReadinessCheck(BaseSchema):
    name = String(required=True)
    state = String(required=True)
    advice = String(required=True)


class Readiness(BaseSchema):
    """The state of each part of the installation, `ok`, `degraded` or `failed`, and the worst of
    them. `advice`: what to do; may be empty."""

    status = String(required=True)
    checks = List(Nested(ReadinessCheck), required=True)


class Accepted(BaseSchema):
    """The request will be processed in the background."""

    message = String(required=True)


class HTTPError(BaseSchema):
    """All errors except 422."""

    detail = String(required=True)


class ValidationError(BaseSchema):
    """One problem of a request: its location, message and kind."""

    loc = List(
        fields.Raw(metadata={"anyOf": [{"type": "string"}, {"type": "integer"}]}), required=True
    )
    msg = String(required=True)
    type = String(required=True)


class HTTPValidationError(BaseSchema):
    detail = List(Nested(ValidationError))
