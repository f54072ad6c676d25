"""`/metrics` for Prometheus. It requires no key and contains numbers and the names of workspaces,
so restrict access to it."""

from __future__ import annotations

from flask import Flask, Response

from memservice.api.routing import EXTENSION

PATH = "/metrics"


def register(app: Flask) -> None:
    def metrics() -> Response:
        opened = app.extensions[EXTENSION]
        if opened.metrics is None:
            return Response(
                "metrics are off: set METRICS_ENABLED to true\n", 404, mimetype="text/plain"
            )
        body, kind = opened.metrics.exposition()
        return Response(body, content_type=kind)

    app.add_url_rule(PATH, "metrics", metrics, methods=["GET"])
