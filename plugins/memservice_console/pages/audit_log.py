"""The audit log, and its export."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

from flask import Response, request

from memservice.domain.records import AuditEntry
from memservice.domain.times import wire_seconds
from memservice.services.auth.permissions import Permission
from memservice.services.members import audit
from memservice.spi import web
from memservice_console.rendering import render
from memservice_console.routes import Routes
from memservice_console.sign_in import browser
from memservice_console.visitors import visitor

routes = Routes(Permission.VIEW_AUDIT_LOG)

Writer = Callable[[Iterator[AuditEntry]], Iterator[str]]
COLUMNS = ("time", "actor", "actor_uid", "action", "target", "workspace", "address", "detail")


@routes.get("/console/audit")
def audit_log() -> Response:
    actor = request.args.get("actor", "").strip()
    action = request.args.get("action", "").strip()
    listing = audit.browse(
        web.runtime(),
        visitor().principal,
        request.args.get("after"),
        actor=actor or None,
        action=action or None,
    )
    return render("audit_log.html", listing=listing, actor=actor, action=action)


@routes.get("/console/audit/export.csv")
def export_audit_log_as_csv() -> Response:
    return _download(_csv, "text/csv", "csv")


@routes.get("/console/audit/export.json")
def export_audit_log_as_json() -> Response:
    return _download(_json, "application/json", "json")


def _entries(form: str) -> Iterator[AuditEntry]:
    """Newest first; the export itself is the first one."""
    rt = web.runtime()
    audit.record(rt, visitor(), browser(), "audit-log.export", detail={"format": form})
    return audit.every(rt, visitor().principal)


def _download(write: Writer, mimetype: str, suffix: str) -> Response:
    """Takes one of the process's places for slow answers until it is sent."""
    free = web.hold_slot()
    try:
        entries = _entries(suffix)
    except BaseException:
        free()
        raise
    response = Response(
        write(entries),
        mimetype=mimetype,
        headers={
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="audit-log.{suffix}"',
        },
    )
    response.call_on_close(free)
    return response


def _row(entry: AuditEntry) -> dict[str, Any]:
    return {
        "time": wire_seconds(entry.created_at),
        "actor": entry.actor,
        "actor_uid": entry.actor_uid,
        "action": entry.action,
        "target": entry.target,
        "workspace": entry.workspace,
        "address": entry.address,
        "detail": entry.detail,
    }


def _json(entries: Iterator[AuditEntry]) -> Iterator[str]:
    """An array with one entry a line."""
    yield "["
    for number, entry in enumerate(entries):
        yield f"{',' if number else ''}\n{json.dumps(_row(entry), ensure_ascii=False)}"
    yield "\n]\n"


def _csv(entries: Iterator[AuditEntry]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for entry in entries:
        row = _row(entry)
        row["detail"] = json.dumps(entry.detail, ensure_ascii=False, sort_keys=True)
        writer.writerow([_cell(row[column]) for column in COLUMNS])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _cell(value: str | None) -> str:
    """Without what a spreadsheet takes for a formula: names are chosen by those who get them."""
    text = value or ""
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text
