"""Forms: what was typed, and the problems of each field."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from flask import request

from memservice.domain.errors import (
    Conflict,
    Disabled,
    InvalidInput,
    MemserviceError,
    Problem,
    Refused,
)

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

    def refusals(self, *also: type[MemserviceError], **fields: str) -> Refusals:
        """A block in which what a service refuses becomes a problem of the form; `also`: further
        errors that do. `fields`: by the name in a problem's place, the field; other names are those
        of fields."""
        return Refusals(self, (Conflict, Refused, Disabled, *also), fields)


class Refusals:
    def __init__(
        self, form: Form, kinds: tuple[type[MemserviceError], ...], fields: Mapping[str, str]
    ) -> None:
        self._form, self._kinds, self._fields = form, kinds, fields

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, InvalidInput):
            for problem in error.problems:
                self._form.add(self._field(problem), _message(problem))
            return True
        if isinstance(error, self._kinds):
            self._form.add(WHOLE, str(error))
            return True
        return False

    def _field(self, problem: Problem) -> str:
        """The field whose name ends the problem's place (`summary.enabled`), or else the last part
        of the place that is a field."""
        names = [self._fields.get(step, step) for step in problem.loc if isinstance(step, str)]
        endings = [".".join(names[start:]) for start in range(len(names))]
        fields = (name for name in (*endings, *reversed(names)) if name in self._form.values)
        return next(fields, WHOLE)


def _message(problem: Problem) -> str:
    """Items of a list are typed one a line."""
    number = next((step + 1 for step in problem.loc if isinstance(step, int)), None)
    return problem.message if number is None else f"Line {number}: {problem.message}"
