"""Workspaces: the list, and one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, request

from memservice.domain import configuration
from memservice.domain.values import INT_MAX
from memservice.runtime import Runtime
from memservice.services import browsing, deletion
from memservice.services import workspaces as service
from memservice.services.transfer import export
from memservice.spi import web
from memservice_console.audit import record
from memservice_console.forms import Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes()

ROWS_HEADER = "X-Memservice-Rows"
"""Of an export: about how many rows it has, for the progress that the page's script shows. Vectors
follow after the rows."""
SWITCHES = (
    ("reasoning", "enabled", "Derive conclusions from messages"),
    ("peer_card", "use", "Use peer cards"),
    ("peer_card", "create", "Keep peer cards up to date"),
    ("summary", "enabled", "Write summaries"),
    ("dream", "enabled", "Consolidate in dreams"),
    ("self_service", "enabled", "Let a peer's own key export and erase that peer"),
)
_LOWEST = configuration.MIN_MESSAGES
_DAYS = (1, configuration.MAX_RETENTION_DAYS)
NUMBERS = (
    (
        "summary",
        "messages_per_short_summary",
        "Messages per short summary",
        (_LOWEST["messages_per_short_summary"], INT_MAX),
    ),
    (
        "summary",
        "messages_per_long_summary",
        "Messages per long summary",
        (_LOWEST["messages_per_long_summary"], INT_MAX),
    ),
    ("retention", "messages_days", "Erase messages after days (empty: never)", _DAYS),
    ("retention", "conclusions_days", "Erase conclusions after days (empty: never)", _DAYS),
)
"""Section, key, label, and the smallest and greatest number."""
TEXTS = (
    ("reasoning", "Instructions for deriving"),
    ("peer_card", "Instructions for peer cards"),
    ("summary", "Instructions for summaries"),
    ("dream", "Instructions for dreams"),
    ("dialectic", "Instructions for chat"),
)


@routes.get("/console/workspaces")
def workspaces() -> Response:
    return _list(Form())


def _list(form: Form, status: int = 200) -> Response:
    rt: Runtime = web.runtime()
    listing = browsing.list_workspaces(rt, visitor().principal, request.args.get("after"))
    return render("workspaces.html", status, listing=listing, form=form)


@routes.post("/console/workspaces")
def create_workspace() -> Response:
    form = Form.sent()
    created = False
    with form.refusals(workspace_id="id"):
        _, created = service.get_or_create(
            web.runtime(), visitor().principal, form["id"].strip(), None, None
        )
    if form.ok and not created:
        form.add("id", "There is a workspace with this id already: choose another one")
    if not form.ok:
        return _list(form, 422)
    record("workspace.create", workspace_id=form["id"].strip())
    return redirect("workspace", workspace_id=form["id"].strip(), done="created")


@routes.get("/console/workspaces/<workspace_id>")
def workspace(workspace_id: str) -> Response:
    return _show(workspace_id)


def _show(
    workspace_id: str,
    settings: Form | None = None,
    deleting: Form | None = None,
    status: int = 200,
) -> Response:
    overview = browsing.overview(
        web.runtime(),
        visitor().principal,
        workspace_id,
        request.args.get("peers_after"),
        request.args.get("sessions_after"),
    )
    return render(
        "workspace.html",
        status,
        overview=overview,
        settings=settings or Form(_typed(overview.workspace.configuration)),
        deleting=deleting or Form(),
        switches=SWITCHES,
        numbers=NUMBERS,
        texts=TEXTS,
    )


def _typed(values: Mapping[str, Any]) -> dict[str, str]:
    """A configuration as the form's fields."""
    fields = {"custom_instructions": values.get("custom_instructions") or ""}
    for section, keys in configuration.SECTIONS.items():
        part = values.get(section) or {}
        for key in keys:
            value = part.get(key)
            fields[f"{section}.{key}"] = (
                ""
                if value is None
                else str(value).lower()
                if isinstance(value, bool)
                else str(value)
            )
    return fields


@routes.post("/console/workspaces/<workspace_id>/export")
def export_workspace(workspace_id: str) -> Response:
    free = web.hold_slot()
    try:
        lines = export.download(web.runtime(), visitor().principal, workspace_id)
        rows = export.size(web.runtime(), workspace_id)
        record("workspace.export", workspace_id=workspace_id)
    except BaseException:
        free()
        raise
    name = f"{workspace_id}.jsonl"  # ids are letters, digits, dashes and underscores
    response = Response(lines, mimetype="application/x-ndjson")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "no-store"
    response.headers[ROWS_HEADER] = str(rows)
    response.call_on_close(free)
    return response


@routes.post("/console/workspaces/<workspace_id>/configuration")
def configure_workspace(workspace_id: str) -> Response:
    form = Form.sent()
    sections = _configuration(form)
    if form.ok:
        with form.refusals(summary="summary.messages_per_long_summary"):
            service.update(web.runtime(), visitor().principal, workspace_id, None, sections)
    if not form.ok:
        return _show(workspace_id, settings=form, status=422)
    record("workspace.configure", workspace_id=workspace_id)
    return redirect("workspace", workspace_id=workspace_id, done="saved")


def _configuration(form: Form) -> dict[str, Any]:
    """Every section whole, so that an emptied field is unset."""
    sections: dict[str, dict[str, Any]] = {section: {} for section in configuration.SECTIONS}
    for section, key, _ in SWITCHES:
        if form[f"{section}.{key}"] in ("true", "false"):
            sections[section][key] = form[f"{section}.{key}"] == "true"
    for section, key, _, bounds in NUMBERS:
        value = form.integer(f"{section}.{key}", *bounds)
        if value is not None:
            sections[section][key] = value
    for section, _ in TEXTS:
        text = form.text(f"{section}.custom_instructions")
        if text is not None:
            sections[section]["custom_instructions"] = text
    return {**sections, "custom_instructions": form["custom_instructions"].strip()}


@routes.post("/console/workspaces/<workspace_id>/delete")
def delete_workspace(workspace_id: str) -> Response:
    form = Form.sent()
    if form["id"] != workspace_id:
        form.add("id", f"Type {workspace_id} to delete this workspace with everything in it")
        return _show(workspace_id, deleting=form, status=422)
    deletion.delete_workspace(web.runtime(), visitor().principal, workspace_id, with_sessions=True)
    record("workspace.delete", workspace_id=workspace_id)
    return redirect("workspaces", done="deleted")
