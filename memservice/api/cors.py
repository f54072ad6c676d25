"""Cross-origin requests (CORS): the permitted web pages, and the headers for browsers."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from flask import Request, Response
from werkzeug.datastructures import Headers

MAX_AGE = 600
"""Seconds that a browser may cache the response to a preflight."""

_CROSS_ORIGIN = frozenset({"cross-site", "same-site"})
"""`Sec-Fetch-Site` of requests by a page of another origin."""


def is_of_console(request: Request) -> bool:
    """Whether the request is for a page of the console. Other origins can never read or send such
    requests, even if `CORS_ORIGINS` lists them: browsers send the console's cookies from any port
    and subdomain of its host."""
    return request.path == "/console" or request.path.startswith("/console/")


class Cors:
    """`origins` are compared exactly; `*` permits every page, but without credentials."""

    def __init__(self, origins: Collection[str]) -> None:
        self._any = "*" in origins
        self._origins = frozenset(origin.rstrip("/") for origin in origins)

    def preflight(self, request: Request) -> Response | None:
        """The response to a preflight; None for any other request."""
        origin = request.headers.get("Origin")
        method = request.headers.get("Access-Control-Request-Method")
        if request.method != "OPTIONS" or origin is None or method is None:
            return None
        if is_of_console(request) or not self._allows(origin):
            return Response("Disallowed CORS origin", 400, mimetype="text/plain")
        answer = Response("OK", 200, mimetype="text/plain")
        answer.headers["Access-Control-Allow-Methods"] = method
        answer.headers["Access-Control-Max-Age"] = str(MAX_AGE)
        requested_headers = request.headers.get("Access-Control-Request-Headers")
        if requested_headers is not None:
            answer.headers["Access-Control-Allow-Headers"] = requested_headers
        return answer

    def mark(self, request: Request, headers: Headers) -> None:
        """Set the headers that allow the page to read this response."""
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
        """Whether to process a request that a browser sends without a preflight: its page has our
        origin or a permitted one, or it is not from a page."""
        origin = request.headers.get("Origin")
        if origin is None and request.headers.get("Sec-Fetch-Site") in _CROSS_ORIGIN:
            return False  # for instance an image in a page
        if origin is None or urlsplit(origin).netloc == request.host:
            return True
        return not is_of_console(request) and self._allows(origin)

    def _allows(self, origin: str) -> bool:
        return self._any or origin in self._origins
