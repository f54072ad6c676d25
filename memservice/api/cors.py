"""Cross-origin requests: which web pages may call, and what the browser is told."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from flask import Request, Response
from werkzeug.datastructures import Headers

MAX_AGE = 600
"""Seconds for which a browser may remember a preflight's answer."""

_ELSEWHERE = frozenset({"cross-site", "same-site"})
"""What browsers say of requests that a page of another origin made."""


def is_of_console(request: Request) -> bool:
    """Whether the request is for a page of the console. Other origins never read or send those,
    whatever `CORS_ORIGINS` lists: browsers send the console's cookies from any port and subdomain
    of its host."""
    return request.path == "/console" or request.path.startswith("/console/")


class Cors:
    """`origins` are compared exactly; `*` lets every page in, but then without the page's
    credentials."""

    def __init__(self, origins: Collection[str]) -> None:
        self._any = "*" in origins
        self._origins = frozenset(origin.rstrip("/") for origin in origins)

    def preflight(self, request: Request) -> Response | None:
        """The answer to a preflight, or None if the request is none."""
        origin = request.headers.get("Origin")
        method = request.headers.get("Access-Control-Request-Method")
        if request.method != "OPTIONS" or origin is None or method is None:
            return None
        if is_of_console(request) or not self._allows(origin):
            return Response("Disallowed CORS origin", 400, mimetype="text/plain")
        answer = Response("OK", 200, mimetype="text/plain")
        answer.headers["Access-Control-Allow-Methods"] = method
        answer.headers["Access-Control-Max-Age"] = str(MAX_AGE)
        asked = request.headers.get("Access-Control-Request-Headers")
        if asked is not None:
            answer.headers["Access-Control-Allow-Headers"] = asked
        return answer

    def mark(self, request: Request, headers: Headers) -> None:
        """Tell the browser whether the page that sent the request may read this answer."""
        headers.add("Vary", "Origin")
        origin = request.headers.get("Origin", "")
        if is_of_console(request) or not self._allows(origin):
            return
        if self._any:
            headers["Access-Control-Allow-Origin"] = "*"
            return
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Allow-Credentials"] = "true"

    def may_write(self, request: Request) -> bool:
        """Whether what a browser sends without a preflight may be acted on: the page is ours, or
        one that may call, or it is no page."""
        origin = request.headers.get("Origin")
        if origin is None and request.headers.get("Sec-Fetch-Site") in _ELSEWHERE:
            return False  # for instance a picture in a page
        if origin is None or urlsplit(origin).netloc == request.host:
            return True
        return not is_of_console(request) and self._allows(origin)

    def _allows(self, origin: str) -> bool:
        return self._any or origin in self._origins
