"""A peer: its card, and what is concluded about it."""

from __future__ import annotations

from flask import Response, request

from memservice.services import browsing, cards, conclusions, corrections, supersession
from memservice.services.auth.permissions import Permission
from memservice.spi import web
from memservice_console.audit import record
from memservice_console.forms import Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes()

_PEER = "/console/workspaces/<workspace_id>/peers/<peer_id>"


@routes.get(_PEER)
def peer(workspace_id: str, peer_id: str) -> Response:
    return _show(workspace_id, peer_id)


def _show(
    workspace_id: str,
    peer_id: str,
    card: Form | None = None,
    status: int = 200,
) -> Response:
    overview = browsing.peer_overview(
        web.runtime(),
        visitor().principal,
        workspace_id,
        peer_id,
        request.values.get("observer") or None,
        request.args.get("after"),
    )
    return render(
        "peer.html",
        status,
        workspace_id=workspace_id,
        overview=overview,
        card=card or Form({"lines": "\n".join(overview.card)}),
        after=request.args.get("after"),
    )


@routes.post(_PEER + "/card")
def save_card(workspace_id: str, peer_id: str) -> Response:
    form = Form.sent()
    observer = form.text("observer") or peer_id
    with form.refusals(peer_card="lines"):
        cards.put(
            web.runtime(),
            visitor().principal,
            workspace_id,
            observer,
            peer_id,
            form["lines"].split("\n"),
        )
    if not form.ok:
        return _show(workspace_id, peer_id, form, status=422)
    record("card.change", target=peer_id, workspace_id=workspace_id)
    return redirect(
        "peer", workspace_id=workspace_id, peer_id=peer_id, observer=observer, done="saved"
    )


@routes.get(_PEER + "/conclusions/<uid>/correct")
def correction(workspace_id: str, peer_id: str, uid: str) -> Response:
    visitor().require(Permission.EDIT_MEMORY, workspace_id)
    return _show_correction(workspace_id, peer_id, uid)


def _show_correction(
    workspace_id: str, peer_id: str, uid: str, form: Form | None = None, status: int = 200
) -> Response:
    conclusion = conclusions.get(web.runtime(), visitor().principal, workspace_id, uid)
    return render(
        "conclusion.html",
        status,
        workspace_id=workspace_id,
        peer_id=peer_id,
        conclusion=conclusion,
        form=form or Form({"content": conclusion.content}),
        after=request.args.get("after"),
    )


@routes.post(_PEER + "/conclusions/<uid>/correct")
def correct_conclusion(workspace_id: str, peer_id: str, uid: str) -> Response:
    form = Form.sent()
    with form.refusals():
        corrected = corrections.correct(
            web.runtime(), visitor().principal, workspace_id, uid, form["content"]
        )
    if not form.ok:
        return _show_correction(workspace_id, peer_id, uid, form, 422)
    record("conclusion.correct", target=uid, workspace_id=workspace_id, successor=corrected.uid)
    return _back(workspace_id, peer_id, "corrected")


@routes.post(_PEER + "/conclusions/<uid>/invalidate")
def invalidate_conclusion(workspace_id: str, peer_id: str, uid: str) -> Response:
    corrections.invalidate(web.runtime(), visitor().principal, workspace_id, uid)
    record("conclusion.invalidate", target=uid, workspace_id=workspace_id)
    return _back(workspace_id, peer_id, "invalidated")


@routes.post(_PEER + "/conclusions/<uid>/restore")
def restore_conclusion(workspace_id: str, peer_id: str, uid: str) -> Response:
    supersession.restore(web.runtime(), visitor().principal, workspace_id, uid)
    record("conclusion.restore", target=uid, workspace_id=workspace_id)
    return _back(workspace_id, peer_id, "restored")


def _back(workspace_id: str, peer_id: str, notice: str) -> Response:
    """To the page of conclusions that the form was on."""
    return redirect(
        "peer",
        workspace_id=workspace_id,
        peer_id=peer_id,
        observer=request.form.get("observer") or peer_id,
        after=request.args.get("after"),
        done=notice,
    )
