"""Pages that other plugins add (`memservice_console_pages`)."""

from __future__ import annotations

from flask import Response, current_app
from markupsafe import Markup

from memservice.domain.errors import NotFound
from memservice.spi import web
from memservice_console.rendering import PAGES, environment, may_see, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes()


@routes.get("/console/plugins/<path>")
def plugin_page(path: str) -> Response:
    page: web.ConsolePage | None = current_app.extensions[PAGES].get(path)
    if page is None or not may_see(visitor(), page):
        raise NotFound(f"There is no page {path} here")
    template = environment().from_string(page.template.read_text(encoding="utf-8"))
    content = Markup(template.render(page.values()))  # noqa: S704  # the environment escapes
    return render("plugin_page.html", title=page.name, content=content, path=path)
