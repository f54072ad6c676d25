"""The client of the current request, since generation 2 has different responses for some clients.

The generation changed while it was in use: lists were filtered by `filter`, searches returned
pages, and the last published clients already use names of generation 3. Most differences are
visible in the request itself. If two versions differ only in the response, the version counts that
published clients send with every request; a request without one gets the response of version 2.5.1
of the API.

`Routes` reads the client once, before anything else of a request; handlers, schemas and encoders
get it from `current()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from flask import Request
from msgspec import Struct

EARLIEST_PATH = "/v1/"
"""The path prefix of generation 2 before it had its own."""

_AGENT = re.compile(r"Honcho/(\w+) (\d+)\.(\d+)")
_VERSION = re.compile(r"(\d+)\.(\d+)")
_NEWER = {"python": (1, 9), "js": (2, 0)}
"""The first versions of the clients with the third generation's names."""
_USUAL = (1, 3)
"""The first version, in either language, that filters by `filters` and gets a list from a
search."""
_STRUCTURED = (1, 5)
"""The first version that reads a representation as an object."""


class Client(Struct, frozen=True):
    language: str = ""
    """In lower case."""
    version: tuple[int, int] | None = None
    """Major and minor; None: not in the request."""
    uses_earliest_path: bool = False

    @property
    def is_early(self) -> bool:
        """Whether the client expects pages from searches, plain text from streams, and only the
        text of a summary."""
        return self.uses_earliest_path or (self.version is not None and self.version < _USUAL)

    @property
    def has_newest_names(self) -> bool:
        """Whether the client uses the names of generation 3."""
        return self.version is not None and self.version >= _NEWER.get(self.language, _NEWER["js"])

    @property
    def reads_text(self) -> bool:
        """Whether the client expects a representation as text, like the first and the last
        clients."""
        return (
            self.uses_earliest_path
            or self.has_newest_names
            or (self.version is not None and self.version < _STRUCTURED)
        )


_CURRENT: ContextVar[Client] = ContextVar("client", default=Client())  # noqa: B039 - frozen


def current() -> Client:
    """The client of the current request; outside of one, a client without a version."""
    return _CURRENT.get()


@contextmanager
def serving(client: Client) -> Iterator[None]:
    """Make `current()` return this client inside the block."""
    token = _CURRENT.set(client)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def client_of(request: Request) -> Client:
    """The client, from the path and the headers of its request."""
    return Client(*_language_and_version(request), request.path.startswith(EARLIEST_PATH))


def _language_and_version(request: Request) -> tuple[str, tuple[int, int] | None]:
    headers = request.headers
    version = _VERSION.match(headers.get("X-Stainless-Package-Version", ""))
    if version is not None:
        language = headers.get("X-Stainless-Lang", "").lower()
        return language, (int(version[1][:9]), int(version[2][:9]))
    agent = _AGENT.search(headers.get("User-Agent", ""))
    if agent is None:
        return "", None
    return agent[1].lower(), (int(agent[2][:9]), int(agent[3][:9]))
