"""The names that the service answers to, compared with each request's `Host`.

A web page can point its own name at this machine after it was loaded (DNS rebinding): the browser
then takes the service for a part of that page, and no rule about origins holds. The request still
carries the page's name as its host, and is refused here.
"""

from __future__ import annotations

import ipaddress
import re

from memservice.settings import Settings

ANY = "*"
STATUS = 421
"""Misdirected Request (RFC 9110, section 15.5.20)."""

_AUTHORITY = re.compile(r"(?:\[(?P<six>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(?::[0-9]*)?")


class Hosts:
    """IP addresses, `localhost` and the name that the server is bound to are always answered; other
    names if `ALLOWED_HOSTS` has them.

    While authentication is on and `ALLOWED_HOSTS` is not given, every name is answered: a page has
    no key.
    """

    def __init__(self, settings: Settings) -> None:
        given = settings.app.allowed_hosts
        self._any = ANY in given or (settings.auth.use_auth and not given)
        names = {
            canonical(name) for name in (*given, settings.server.host, "localhost", ".localhost")
        }
        self._names = frozenset(names)
        self._below = tuple(name for name in names if name.startswith("."))

    def refusal(self, host: str | None) -> str | None:
        """What to answer to a request with this `Host` header; None if it is served. HTTP/1.0 has
        no such header; no browser speaks it."""
        if self._any or host is None or self._allows(host):
            return None
        return (
            "The request's Host header is a name that this server does not answer to. "
            "If it is a name of this server, the operator adds it to the setting ALLOWED_HOSTS"
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
    """One spelling for each name: lower case, without the root's dot, and with IDNA's letters as
    they are sent."""
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
