"""Which spelling of the second generation the sender of the current request knows.

It changed while it was out: lists were filtered by `filter`, searches were answered in pages, and
the last published clients already use names of the third generation. Most of that is told by what
is sent. Where two spellings differ in the answer alone, the version decides that the published
clients put into every request; whoever does not say one gets what version 2.5.1 of the API
answered.
"""

from __future__ import annotations

import re

from flask import has_request_context, request

EARLIEST_PATH = "/v1/"
"""Where the second generation was found before it had a path of its own."""

_AGENT = re.compile(r"Honcho/(\w+) (\d+)\.(\d+)")
_VERSION = re.compile(r"(\d+)\.(\d+)")
_NEWER = {"python": (1, 9), "js": (2, 0)}
"""The first versions of the clients with the third generation's names."""
_USUAL = (1, 3)
"""The first version, in either language, that filters by `filters` and gets what it searches for as
a list."""
_STRUCTURED = (1, 5)
"""The first version to which a representation is an object."""


def earliest() -> bool:
    """Was the request sent to the path from before the second generation had its own?"""
    return has_request_context() and request.path.startswith(EARLIEST_PATH)


def early() -> bool:
    """A client that wants pages of what it searches for, bare text as a stream, and the text alone
    of a summary."""
    version = _client()[1]
    return earliest() or (version is not None and version < _USUAL)


def newer() -> bool:
    """A client with the third generation's names."""
    language, version = _client()
    return version is not None and version >= _NEWER.get(language, _NEWER["js"])


def wants_text() -> bool:
    """A client to which a representation is a text: the first ones and the last ones."""
    version = _client()[1]
    return earliest() or newer() or (version is not None and version < _STRUCTURED)


def _client() -> tuple[str, tuple[int, int] | None]:
    """The client's language, and its version as far as it matters."""
    if not has_request_context():
        return "", None
    headers = request.headers
    said = _VERSION.match(headers.get("X-Stainless-Package-Version", ""))
    if said is not None:
        return headers.get("X-Stainless-Lang", "").lower(), (int(said[1][:9]), int(said[2][:9]))
    agent = _AGENT.search(headers.get("User-Agent", ""))
    if agent is None:
        return "", None
    return agent[1].lower(), (int(agent[2][:9]), int(agent[3][:9]))
