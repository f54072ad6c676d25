"""`/docs`: the API's document as pages on which every operation can be tried. Everything is served from here, nothing is loaded from afar.

`vendor/` holds files of swagger-ui-dist as they are published (see `vendor/README.md`), `page/` ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path

from flask import Flask, Response, send_from_directory

PATH = "/docs"

_HERE = Path(__file__).parent
ASSETS: Mapping[str, str] = {
    "swagger-ui-bundle.js": "vendor",
    "swagger-ui.css": "vendor",
    "favicon-32x32.png": "vendor",
    "start.js": "page",
    "page.css": "page",
}
"""What a browser may ask for, and where it lies."""

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
_HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_CACHED_SECONDS = 3600


def register(app: Flask, documents: Mapping[str, str]) -> None:
    """Serve the pages. `documents`: name → path of each document that can be looked at, the first one to begin with."""
    listed = json.dumps([{"name": name, "path": path.lstrip("/")} for name, path in documents.items()])
    page = (_HERE / "page" / "page.html").read_text(encoding="utf-8").replace("{documents}", escape(listed))

    def show() -> Response:
        return Response(page, mimetype="text/html", headers={**_HEADERS, "Cache-Control": "no-cache"})

    def asset(name: str) -> Response:
        answer = send_from_directory(_HERE / ASSETS[name], name, max_age=_CACHED_SECONDS)
        answer.headers.update(_HEADERS)
        return answer

    names = ",".join(f'"{name}"' for name in ASSETS)
    app.add_url_rule(PATH, "playground", show, methods=["GET"])
    app.add_url_rule(f"{PATH}/<any({names}):name>", "playground_asset", asset, methods=["GET"])
