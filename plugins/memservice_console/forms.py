"""Forms: what was typed, and the problems of each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from flask import request

from memservice.domain.errors import Conflict, Disabled, InvalidInput, NotFound, Refused

WHOLE = ""
"""The place of a problem that belongs to no field."""


class Form:
    """Values by field, and problems by field. A page shows both, so that nothing typed is lost."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = dict(values or {})
        self.problems: dict[str, list[str]] = {}

    @classmethod
    def sent(cls) -> Form:
        # Browsers send line breaks as CRLF.
        return cls({name: text.replace("\r\n", "\n") for name, text in request.form.items()})

    def __getitem__(self, field: str) -> str:
        return self.values.get(field, "")

    def text(self, field: str) -> str | None:
        """Without spaces around it; None if nothing was typed."""
        return self[field].strip() or None

    def integer(self, field: str, low: int, high: int | None = None) -> int | None:
        """None if nothing was typed, or what was typed is no such number (a problem then)."""
        typed = self.text(field)
        if typed is None:
            return None
        bound = f"from {low}" + ("" if high is None else f" to {high}")
        try:
            value = int(typed)
        except ValueError:
            self.add(field, f"Enter a whole number {bound}")
            return None
        if value < low or (high is not None and value > high):
            self.add(field, f"Enter a number {bound}")
            return None
        return value

    def add(self, field: str, problem: str) -> None:
        self.problems.setdefault(field, []).append(problem)

    @property
    def ok(self) -> bool:
        return not self.problems

    @contextmanager
    def refusals(self, **fields: str) -> Iterator[None]:
        """What a service refuses becomes a problem of the form. `fields`: by the last name of a
        problem's place, the field; other names are those of fields."""
        try:
            yield
        except InvalidInput as error:
            for problem in error.problems:
                names = [fields.get(step, step) for step in problem.loc if isinstance(step, str)]
                field = next((name for name in reversed(names) if name in self.values), WHOLE)
                self.add(field, problem.message)
        except (Conflict, Refused, NotFound, Disabled) as error:
            self.add(WHOLE, str(error))
