"""What every operation shares: health and errors."""

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
    """How each part of the installation is: `ok`, `degraded` or `failed`; and the worst of it.
    `advice`: what to do, empty if nothing."""

    status = String(required=True)
    checks = List(Nested(ReadinessCheck), required=True)


class Accepted(BaseSchema):
    """What was asked for will be done in the background."""

    message = String(required=True)


class HTTPError(BaseSchema):
    """Every error but 422."""

    detail = String(required=True)


class ValidationError(BaseSchema):
    """One thing that is wrong with a request: where, what, and of which kind."""

    loc = List(
        fields.Raw(metadata={"anyOf": [{"type": "string"}, {"type": "integer"}]}), required=True
    )
    msg = String(required=True)
    type = String(required=True)


class HTTPValidationError(BaseSchema):
    detail = List(Nested(ValidationError))
