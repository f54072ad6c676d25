"""Validators: limits that are enforced, reported with the kind of the error, and included in the
OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from flask import current_app, has_app_context
from marshmallow import ValidationError

from memservice.api.fields import TypedMessage


class Length:
    """Limits of the length of a text (in characters) or a list, inclusive."""

    equal = None  # apispec recognises a length by its three attributes

    def __init__(self, min: int | None = None, max: int | None = None) -> None:
        self._min, self._max = min, max

    @property
    def min(self) -> int | None:
        return self._min

    @property
    def max(self) -> int | None:
        return self._max

    def __call__(self, value: str | Sequence[Any]) -> None:
        size, minimum, maximum = len(value), self.min, self.max
        if minimum is not None and size < minimum:
            raise self._error(value, "short", f"at least {minimum}", minimum)
        if maximum is not None and size > maximum:
            raise self._error(value, "long", f"at most {maximum}", maximum)

    @staticmethod
    def _error(value: str | Sequence[Any], kind: str, limit: str, count: int) -> ValidationError:
        type_name, code, suffix = (
            ("String", "string_too", "")
            if isinstance(value, str)
            else ("List", "too", f", not {len(value)}")
        )
        unit = "character" if isinstance(value, str) else "item"
        return ValidationError(
            TypedMessage(
                f"{type_name} should have {limit} {unit}{'' if count == 1 else 's'}{suffix}",
                f"{code}_{kind}",
            )
        )


class LengthOfSetting(Length):
    """A length with a maximum from a setting (`settings.app.<name>`); `default` if no application
    is running."""

    def __init__(self, name: str, default: int) -> None:
        super().__init__(0)
        self._name, self._default = name, default

    @property
    def max(self) -> int:
        return _setting(self._name, self._default)


class Range:
    """Limits of a number, inclusive."""

    def __init__(self, min: float | None = None, max: float | None = None) -> None:
        self._min, self._max = min, max

    @property
    def min(self) -> float | None:
        return self._min

    @property
    def max(self) -> float | None:
        return self._max

    def __call__(self, value: float) -> None:
        minimum, maximum = self.min, self.max
        if minimum is not None and value < minimum:
            raise ValidationError(
                TypedMessage(
                    f"Input should be greater than or equal to {minimum}", "greater_than_equal"
                )
            )
        if maximum is not None and value > maximum:
            raise ValidationError(
                TypedMessage(f"Input should be less than or equal to {maximum}", "less_than_equal")
            )


class RangeOfSetting(Range):
    """A range with a maximum from a setting."""

    def __init__(self, name: str, default: int) -> None:
        super().__init__()
        self._name, self._default = name, default

    @property
    def max(self) -> float:
        return _setting(self._name, self._default)


class Pattern:
    """A regular expression that the whole text must match."""

    def __init__(self, pattern: str) -> None:
        self.regex = re.compile(pattern)

    def __call__(self, value: str) -> None:
        # `$` alone would let a trailing newline pass.
        if self.regex.fullmatch(value) is None:
            raise ValidationError(
                TypedMessage(
                    f"String should match pattern '{self.regex.pattern}'", "string_pattern_mismatch"
                )
            )


class OneOf:
    """A fixed set of values."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def __call__(self, value: str) -> None:
        if value not in self.choices:
            raise ValidationError(
                TypedMessage(
                    f"Input should be {' or '.join(repr(c) for c in self.choices)}", "literal_error"
                )
            )


def _setting(name: str, default: int) -> int:
    if not has_app_context():
        return default
    value: int = getattr(current_app.extensions["memservice"].settings.app, name)
    return value
