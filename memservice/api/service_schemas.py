"""What every operation shares: health and errors."""

from __future__ import annotations

from marshmallow import fields

from memservice.api.fields import (
    ListOf,
    Part,
    Text,
)
from memservice.api.schema import Shape


class Health(Shape):
    status = Text(required=True)


class ReadinessCheck(Shape):
    name = Text(required=True)
    state = Text(required=True)
    advice = Text(required=True)


class Readiness(Shape):
    """How each part of the installation is: `ok`, `degraded` or `failed`; and the worst of it. `advice`: what to do, empty if nothing."""

    status = Text(required=True)
    checks = ListOf(Part(ReadinessCheck), required=True)


class Accepted(Shape):
    """What was asked for will be done in the background."""

    message = Text(required=True)


class HTTPError(Shape):
    """Every error but 422."""

    detail = Text(required=True)


class ValidationError(Shape):
    """One thing that is wrong with a request: where, what, and of which kind."""

    loc = ListOf(fields.Raw(metadata={"anyOf": [{"type": "string"}, {"type": "integer"}]}), required=True)
    msg = Text(required=True)
    type = Text(required=True)


class HTTPValidationError(Shape):
    detail = ListOf(Part(ValidationError))
