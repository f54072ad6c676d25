"""Search over a whole workspace, with the parts of each score."""

from __future__ import annotations

from flask import Response, request

from memservice.services.retrieval import workspace_search
from memservice.spi import web
from memservice_console.forms import Form
from memservice_console.rendering import render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes()


@routes.get("/console/workspaces/<workspace_id>/search")
def search(workspace_id: str) -> Response:
    form = Form(dict(request.args))
    results = None
    if form.text("query") is not None:
        with form.refusals():
            results = workspace_search.explain(
                web.runtime(), visitor().principal, workspace_id, form["query"]
            )
    return render(
        "search.html",
        200 if form.ok else 422,
        workspace_id=workspace_id,
        form=form,
        results=results,
    )
