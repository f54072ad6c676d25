"""The API's document, and the registration of routes that it is made from."""

from __future__ import annotations

import threading
from typing import Any

import flask_smorest
from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from memservice.api import errors
from memservice.api.answers import json_answer
from memservice.api.auth import SECURITY_SCHEME
from memservice.api.schemas.service import HTTPError


class Document(flask_smorest.Api):  # type: ignore[misc]  # flask-smorest has no types
    """OpenAPI 3.1 at `/openapi.json`, written by flask-smorest from what the routes declare."""

    ERROR_SCHEMA = HTTPError

    def __init__(self, app: Flask, title: str, version: str, asks_for_keys: bool) -> None:
        self._asks_for_keys = asks_for_keys
        self._writing = threading.Lock()
        self._content: dict[str, Any] | None = None
        self._described_later: list[flask_smorest.Blueprint] = []
        super().__init__(app, spec_kwargs={"title": title, "version": version, "openapi_version": "3.1.0"})
        self.spec.components.security_scheme(SECURITY_SCHEME, {"type": "http", "scheme": "bearer"})

    def add(self, routes: flask_smorest.Blueprint) -> None:
        """Serve these routes. They are described when the document is first asked for, which most processes never are."""
        self._app.register_blueprint(routes)
        self._described_later.append(routes)

    def _register_pagination_header(self) -> None:
        """Pages are described by their envelope: flask-smorest's own header of pages is not used."""

    def handle_http_exception(self, error: HTTPException) -> Response:
        return errors.from_framework(error)

    def content(self) -> dict[str, Any]:
        """The document. Treat it as immutable."""
        with self._writing:
            if self._content is None:
                with self._app.app_context():  # some bounds are the operator's
                    for routes in self._described_later:
                        routes.register_views_in_doc(self, self._app, self.spec, name=routes.name, parameters=None)
                        self.spec.tag({"name": routes.name, "description": routes.description})
                self._content = self.spec.to_dict()
                if not self._asks_for_keys:
                    _make_keys_optional(self._content)
            return self._content

    def _openapi_json(self) -> Response:
        return json_answer(self.content())


def _make_keys_optional(document: dict[str, Any]) -> None:
    """What a server that asks nobody for a key says of its operations: with one, or without."""
    for item in document["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "security" in operation:
                operation["security"].append({})
