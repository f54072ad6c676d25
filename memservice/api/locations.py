"""Locations of service arguments in the request.

A service names the argument that breaks a rule, for instance `("messages", 3, "peer_id")`. This
module adds its location on the wire: `["body", "messages", 3, "peer_id"]`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from memservice.domain.errors import InvalidInput

Loc = tuple[str | int, ...]

ANY = "*"
"""In a key of `Locations.exceptions`: any index."""


class Locations(Struct, frozen=True):
    """The parameters of one operation. An argument that is neither in the path nor a parameter is
    in the body."""

    path: Collection[str]
    query: Collection[str] = ()
    headers: Mapping[str, str] | None = None
    """Argument → header."""
    body: Collection[str] = ()
    exceptions: Mapping[Loc, Loc] | None = None
    """Beginning of an argument → its location, if the request has another name for it."""

    def with_locations(self, error: InvalidInput) -> InvalidInput:
        """The error with the location of each problem, without duplicates."""
        problems = [replace(problem, loc=self.of(problem.loc)) for problem in error.problems]
        return InvalidInput(*dict.fromkeys(problems))

    def of(self, argument: Loc) -> Loc:
        for beginning, location in (self.exceptions or {}).items():
            if len(argument) >= len(beginning) and all(
                part in (ANY, step) for part, step in zip(beginning, argument, strict=False)
            ):
                return (*location, *argument[len(beginning) :])
        name = argument[0] if argument else None
        if name in self.path:
            return ("path", *argument)
        if name in self.query:
            return ("query", *argument)
        if self.headers and isinstance(name, str) and name in self.headers:
            return ("header", self.headers[name], *argument[1:])
        if isinstance(name, str) and self._is_id_of_new(name):
            return ("body", "id", *argument[1:])
        return ("body", *argument)

    def _is_id_of_new(self, name: str) -> bool:
        """Whether the argument is the `id` of the new resource in the body."""
        return name.endswith("_id") and "id" in self.body and name not in self.body
