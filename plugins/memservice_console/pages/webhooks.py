"""Webhooks of a workspace: endpoints, and the attempts to deliver to them."""

from __future__ import annotations

from flask import Response, request

from memservice.domain.records import PAUSED
from memservice.services import webhooks as service
from memservice.services.auth.permissions import Permission
from memservice.services.paging import Paging
from memservice.services.webhooks import Registered
from memservice.spi import web
from memservice_console.audit import record
from memservice_console.forms import Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes(needs=Permission.MANAGE_WEBHOOKS)

_WEBHOOKS = "/console/workspaces/<workspace_id>/webhooks"
_MAX_LETTERS = 50


@routes.get(_WEBHOOKS)
def webhooks(workspace_id: str) -> Response:
    return _show(workspace_id, Form())


def _show(
    workspace_id: str, form: Form, registered: Registered | None = None, status: int = 200
) -> Response:
    # A workspace has few endpoints: WEBHOOK_MAX_WORKSPACE_LIMIT.
    page = service.page(web.runtime(), visitor().principal, workspace_id, Paging(size=100))
    return render(
        "webhooks.html",
        status,
        workspace_id=workspace_id,
        endpoints=page.items,
        form=form,
        registered=registered,
    )


@routes.post(_WEBHOOKS)
def register_webhook(workspace_id: str) -> Response:
    form = Form.sent()
    registered = None
    with form.refusals():
        registered = service.register(web.runtime(), visitor().principal, workspace_id, form["url"])
    if registered is not None and not registered.created:
        form.add("url", "There is an endpoint with this URL already")
    if registered is None or not form.ok:
        return _show(workspace_id, form, status=422)
    record("webhook.create", target=registered.endpoint.uid, workspace_id=workspace_id)
    # Shown in the answer itself: the secret must not be in an address.
    return _show(workspace_id, Form(), registered)


@routes.post(_WEBHOOKS + "/test")
def test_webhooks(workspace_id: str) -> Response:
    service.send_test(web.runtime(), visitor().principal, workspace_id)
    record("webhook.test", workspace_id=workspace_id)
    return redirect("webhooks", workspace_id=workspace_id, done="tested")


@routes.get(_WEBHOOKS + "/<uid>")
def webhook(workspace_id: str, uid: str) -> Response:
    rt, principal = web.runtime(), visitor().principal
    endpoint, listing = service.attempts(
        rt, principal, workspace_id, uid, request.args.get("after")
    )
    letters = service.dead_letters(rt, principal, workspace_id, uid, Paging(size=_MAX_LETTERS))
    return render(
        "webhook.html",
        workspace_id=workspace_id,
        endpoint=endpoint,
        listing=listing,
        letters=letters,
    )


@routes.post(_WEBHOOKS + "/<uid>/redeliver")
def redeliver(workspace_id: str, uid: str) -> Response:
    delivery_uid = request.form.get("delivery", "")
    service.redeliver(web.runtime(), visitor().principal, workspace_id, delivery_uid)
    record("webhook.redeliver", target=uid, workspace_id=workspace_id, delivery=delivery_uid)
    return redirect("webhook", workspace_id=workspace_id, uid=uid, done="redelivered")


@routes.post(_WEBHOOKS + "/<uid>/state")
def set_webhook_state(workspace_id: str, uid: str) -> Response:
    paused = request.form.get("state") == PAUSED
    service.set_paused(web.runtime(), visitor().principal, workspace_id, uid, paused)
    action = "webhook.pause" if paused else "webhook.resume"
    record(action, target=uid, workspace_id=workspace_id)
    return redirect("webhook", workspace_id=workspace_id, uid=uid, done="saved")


@routes.post(_WEBHOOKS + "/<uid>/delete")
def delete_webhook(workspace_id: str, uid: str) -> Response:
    service.delete(web.runtime(), visitor().principal, workspace_id, uid)
    record("webhook.delete", target=uid, workspace_id=workspace_id)
    return redirect("webhooks", workspace_id=workspace_id, done="deleted")
