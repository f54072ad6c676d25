"""A peer: its card, and what is concluded about it."""

from __future__ import annotations

from flask import Response, request

from memservice.services import browsing, cards, conclusions
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


def _show(workspace_id: str, peer_id: str, card: Form | None = None, status: int = 200) -> Response:
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
        return _show(workspace_id, peer_id, form, 422)
    record("card.change", target=peer_id, workspace_id=workspace_id)
    return redirect(
        "peer", workspace_id=workspace_id, peer_id=peer_id, observer=observer, done="saved"
    )


@routes.post(_PEER + "/conclusions/<uid>/invalidate")
def invalidate_conclusion(workspace_id: str, peer_id: str, uid: str) -> Response:
    conclusions.delete(web.runtime(), visitor().principal, workspace_id, uid)
    record("conclusion.invalidate", target=uid, workspace_id=workspace_id)
    return redirect(
        "peer",
        workspace_id=workspace_id,
        peer_id=peer_id,
        observer=request.form.get("observer") or peer_id,
        done="invalidated",
    )
