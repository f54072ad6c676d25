"""Erasures of a workspace: their receipts, and the forms that ask for one."""

from __future__ import annotations

from flask import Response, request

from memservice.domain.text.mentions import MARK
from memservice.services import deletion
from memservice.services.auth.permissions import Permission
from memservice.services.erasure import mentions, messages, peers, person, receipts
from memservice.spi import web
from memservice_console.audit import record
from memservice_console.forms import Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes()

_WORKSPACE = "/console/workspaces/<workspace_id>"
COUNTED = (
    ("messages", "Messages"),
    ("conclusions", "Conclusions by it or about it"),
    ("cards", "Cards"),
    ("members", "Memberships"),
    ("api_keys", "API keys"),
    ("documents", "Documents"),
    ("metamessages", "Metamessages"),
    ("mentions", "Recent messages and conclusions of others that mention it"),
)
"""Tables of a dry run, with their names on the page."""
MENTIONS = ((mentions.KEEP, "keep"), (mentions.REDACT, f"replace by {MARK}"))
"""Choices for the mentions of a peer, with their names on the page."""


@routes.get(_WORKSPACE + "/erasures")
def erasures(workspace_id: str) -> Response:
    listing = receipts.browse(
        web.runtime(), visitor().principal, workspace_id, request.args.get("after")
    )
    return render("erasures.html", workspace_id=workspace_id, listing=listing)


@routes.post(_WORKSPACE + "/peers/<peer_id>/export")
def export_peer(workspace_id: str, peer_id: str) -> Response:
    free = web.hold_slot()
    try:
        lines = person.export(web.runtime(), visitor().principal, workspace_id, peer_id)
        record("peer.export", target=peer_id, workspace_id=workspace_id)
    except BaseException:
        free()
        raise
    response = Response(lines, mimetype="application/x-ndjson")
    # ids are letters, digits, dashes and underscores
    response.headers["Content-Disposition"] = f'attachment; filename="{peer_id}.jsonl"'
    response.headers["Cache-Control"] = "no-store"
    response.call_on_close(free)
    return response


@routes.get(_WORKSPACE + "/sessions/<session_id>/delete")
def session_deletion(workspace_id: str, session_id: str) -> Response:
    visitor().require(Permission.EDIT_MEMORY, workspace_id)
    return _confirm_session(workspace_id, session_id)


def _confirm_session(
    workspace_id: str, session_id: str, form: Form | None = None, status: int = 200
) -> Response:
    return render(
        "delete_session.html",
        status,
        workspace_id=workspace_id,
        session_id=session_id,
        form=form or Form(),
    )


@routes.post(_WORKSPACE + "/sessions/<session_id>/delete")
def delete_session(workspace_id: str, session_id: str) -> Response:
    form = Form.sent()
    if form["id"] != session_id:
        form.add("id", f"Type {session_id} to delete this session with everything in it")
        return _confirm_session(workspace_id, session_id, form, 422)
    deletion.delete_session(web.runtime(), visitor().principal, workspace_id, session_id)
    record("session.delete", target=session_id, workspace_id=workspace_id)
    return redirect("erasures", workspace_id=workspace_id, done="deleted")


@routes.post(_WORKSPACE + "/sessions/<session_id>/messages/<message_id>/delete")
def delete_message(workspace_id: str, session_id: str, message_id: str) -> Response:
    messages.delete(web.runtime(), visitor().principal, workspace_id, session_id, message_id)
    record("message.delete", target=message_id, workspace_id=workspace_id)
    before = request.args.get("before", "")
    return redirect(
        "session",
        workspace_id=workspace_id,
        session_id=session_id,
        before=before if before.isdecimal() else None,
        done="message-deleted",
    )


@routes.get(_WORKSPACE + "/peers/<peer_id>/erase")
def peer_erasure(workspace_id: str, peer_id: str) -> Response:
    visitor().require(Permission.EDIT_MEMORY, workspace_id)
    return _confirm_peer(workspace_id, peer_id)


def _confirm_peer(
    workspace_id: str, peer_id: str, form: Form | None = None, status: int = 200
) -> Response:
    """What would be erased now, and the form that does it."""
    counts = peers.counts(
        web.runtime(), visitor().principal, workspace_id, peer_id, mentions.REDACT
    )
    return render(
        "erase_peer.html",
        status,
        workspace_id=workspace_id,
        peer_id=peer_id,
        counts=[(label, counts[table]) for table, label in COUNTED],
        choices=MENTIONS,
        form=form or Form({"mentions": mentions.KEEP}),
    )


@routes.post(_WORKSPACE + "/peers/<peer_id>/erase")
def erase_peer(workspace_id: str, peer_id: str) -> Response:
    form = Form.sent()
    if form["id"] != peer_id:
        form.add("id", f"Type {peer_id} to erase this peer and everything about it")
        return _confirm_peer(workspace_id, peer_id, form, 422)
    if form["mentions"] not in mentions.CHOICES:
        form.add("mentions", "Choose whether to keep or to replace them")
        return _confirm_peer(workspace_id, peer_id, form, 422)
    peers.erase(web.runtime(), visitor().principal, workspace_id, peer_id, form["mentions"])
    record("peer.erase", target=peer_id, workspace_id=workspace_id)
    return redirect("erasures", workspace_id=workspace_id, done="deleted")
