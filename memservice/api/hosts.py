"""Host names of the service, compared with each request's `Host`.

A web page can point its own name at this machine after it was loaded (DNS rebinding): the browser
then treats the service as part of that page, and CORS does not apply. The request still has the
page's name as its host, and is refused here.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from memservice.settings import Settings

ANY = "*"
STATUS = 421
"""Misdirected Request (RFC 9110, section 15.5.20)."""

_AUTHORITY = re.compile(r"(?:\[(?P<six>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(?::[0-9]*)?")


class Hosts:
    """IP addresses, `localhost` and the name that the server is bound to are always accepted; other
    names only if `ALLOWED_HOSTS` contains them.

    While authentication is on and `ALLOWED_HOSTS` is not set, every name is accepted: a page has no
    key.
    """

    def __init__(self, settings: Settings) -> None:
        allowed = settings.app.allowed_hosts
        self._any = ANY in allowed or (settings.auth.use_auth and not allowed)
        names = {
            canonical(name) for name in (*allowed, settings.server.host, "localhost", ".localhost")
        }
        self._names = frozenset(names)
        self._below = tuple(name for name in names if name.startswith("."))
        self._accepts = lru_cache(256)(self._allows)  # clients send few different names

    def refusal(self, host: str | None) -> str | None:
        """The refusal of a request with this `Host` header; None if it is accepted. HTTP/1.0 has no
        such header, and no browser uses it."""
        if self._any or host is None or self._accepts(host):
            return None
        return (
            "The Host header of the request is not a name of this server. "
            "If it should be, the operator can add it to the setting ALLOWED_HOSTS"
        )

    def _allows(self, host: str) -> bool:
        match = _AUTHORITY.fullmatch(host.strip())
        if match is None:
            return False
        six, name = match["six"], canonical(match["name"] or "")
        if _is_address(six or name):
            return True
        return (
            six is None
            and bool(name)
            and (name in self._names or f".{name}" in self._names or name.endswith(self._below))
        )


def canonical(name: str) -> str:
    """The canonical form of a name: lower case, without the trailing dot, and in IDNA's ASCII
    form."""
    bare = name.strip().lower().removesuffix(".")
    if bare.isascii():
        return bare
    try:
        return bare.encode("idna").decode("ascii")
    except UnicodeError:
        return bare


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
