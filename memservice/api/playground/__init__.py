"""`/docs`: the API's document as pages on which every operation can be tried. All files are served
from here; nothing is loaded from other hosts.

`vendor/` contains files of swagger-ui-dist as published (see `vendor/README.md`), `page/` our own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path

from flask import Flask, Response, request
from werkzeug.exceptions import NotFound

PATH = "/docs"

_HERE = Path(__file__).parent
ASSETS: Mapping[str, tuple[str, str]] = {
    "swagger-ui-bundle.js": ("vendor", "text/javascript"),
    "swagger-ui.css": ("vendor", "text/css"),
    "favicon-32x32.png": ("vendor", "image/png"),
    "start.js": ("page", "text/javascript"),
    "page.css": ("page", "text/css"),
}
"""File name → folder and media type, of the files that are served."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # Swagger UI sets style attributes
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_CACHED_SECONDS = 3600


@cache
def _read(name: str) -> tuple[bytes, str]:
    """A file and its ETag. Cached on demand: together they have two megabytes, and few processes
    serve them."""
    data = (_HERE / ASSETS[name][0] / name).read_bytes()
    return data, sha256(data).hexdigest()[:32]


def register(app: Flask, documents: Mapping[str, str]) -> None:
    """Serve the pages. `documents`: name → path of each available document; the first is the
    default."""
    document_list = json.dumps(
        [{"name": name, "path": path.lstrip("/")} for name, path in documents.items()]
    )
    page = (
        (_HERE / "page" / "page.html")
        .read_text(encoding="utf-8")
        .replace("{documents}", escape(document_list))
    )

    def show() -> Response:
        return Response(
            page, mimetype="text/html", headers={**_HEADERS, "Cache-Control": "no-cache"}
        )

    def asset(name: str) -> Response:
        if name not in ASSETS:
            raise NotFound
        data, tag = _read(name)
        answer = Response(
            data,
            mimetype=ASSETS[name][1],
            headers={**_HEADERS, "Cache-Control": f"public, max-age={_CACHED_SECONDS}"},
        )
        answer.set_etag(tag)
        answer.make_conditional(request)
        return answer

    app.add_url_rule(PATH, "playground", show, methods=["GET"])
    app.add_url_rule(f"{PATH}/<name>", "playground_asset", asset, methods=["GET"])
