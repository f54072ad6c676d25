"""The document of one generation of the API."""

from __future__ import annotations

import threading
from typing import Any

import flask_smorest
from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from memservice.api import errors
from memservice.api.answers import json_answer
from memservice.api.auth import SECURITY_SCHEME
from memservice.api.routing import Routes
from memservice.api.service_schemas import HTTPError


class Document(flask_smorest.Api):  # type: ignore[misc]  # flask-smorest has no types
    """OpenAPI 3.1, written by flask-smorest from what the routes declare."""

    ERROR_SCHEMA = HTTPError

    def __init__(self, app: Flask, generation: str, version: str, asks_for_keys: bool) -> None:
        self._asks_for_keys = asks_for_keys
        self._writing = threading.Lock()
        self._content: dict[str, Any] | None = None
        self._described_later: list[Routes] = []
        described = {
            "title": f"memservice {generation}",
            "version": version,
            "openapi_version": "3.1.0",
        }
        super().__init__(app, spec_kwargs=described, config_prefix=generation)
        self.spec.components.security_scheme(SECURITY_SCHEME, {"type": "http", "scheme": "bearer"})

    def describe(self, routes: Routes) -> None:
        """Describe these routes, which the application serves, when the document is first asked
        for: most processes never are."""
        self._described_later.append(routes)

    def serve(self, path: str, endpoint: str) -> None:
        """Serve the document under this path (it may be served under several)."""
        self._app.add_url_rule(path, endpoint, self._openapi_json, methods=["GET"])

    def _register_doc_blueprint(self) -> None:
        """`serve` says where the document is, and the playground shows it: flask-smorest's own
        pages are not used."""

    def _register_pagination_header(self) -> None:
        """Pages are described by their envelope: flask-smorest's own header of pages is not
        used."""

    def handle_http_exception(self, error: HTTPException) -> Response:
        return errors.from_framework(error)

    def content(self) -> dict[str, Any]:
        """The document. Treat it as immutable."""
        with self._writing:
            if self._content is None:
                with self._app.app_context():  # some bounds are the operator's
                    for routes in self._described_later:
                        routes.register_views_in_doc(
                            self, self._app, self.spec, name=routes.name, parameters=None
                        )
                        self.spec.tag({"name": routes.tag, "description": routes.description})
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
            if isinstance(operation, dict) and {} not in operation.get("security", [{}]):
                operation["security"].append({})
