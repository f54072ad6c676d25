"""Keys: making, listing and revoking them."""

from __future__ import annotations

from flask import Response, request

from memservice.domain.durations import parse_duration
from memservice.runtime import Runtime
from memservice.services.auth import api_keys
from memservice.services.auth.api_keys import KeyRequest, Minted
from memservice.services.auth.permissions import Permission
from memservice.spi import web
from memservice_console.audit import record
from memservice_console.forms import Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.visitors import visitor

routes = Routes(needs=Permission.MANAGE_KEYS)


@routes.get("/console/keys")
def keys() -> Response:
    return _show(Form({"expires_in": "90d"}))


def _show(form: Form, minted: Minted | None = None, status: int = 200) -> Response:
    rt: Runtime = web.runtime()
    listing = api_keys.browse(rt, visitor().principal, request.args.get("after"))
    return render("keys.html", status, listing=listing, form=form, minted=minted, now=rt.clock())


@routes.post("/console/keys")
def make_key() -> Response:
    rt: Runtime = web.runtime()
    form = Form.sent()
    expires_at = None
    if (typed := form.text("expires_in")) is not None:
        try:
            expires_at = rt.clock() + parse_duration(typed)
        except (ValueError, OverflowError) as error:
            form.add("expires_in", str(error))
    admin = form["scope"] == "admin"
    key_request = KeyRequest(
        workspace_id=None if admin else form.text("workspace_id"),
        peer_id=None if admin else form.text("peer_id"),
        session_id=None if admin else form.text("session_id"),
    )
    if not admin and key_request.workspace_id is None:
        form.add("workspace_id", "Enter the workspace, or choose an admin key")
    minted = None
    if form.ok:
        with form.refusals(expires_at="expires_in"):
            minted = api_keys.mint(
                rt, visitor().principal, key_request, expires_at, form.text("label")
            )
    if minted is None:
        return _show(form, status=422)
    record("key.create", target=minted.key.uid, workspace_id=minted.key.workspace)
    # Shown in the answer itself: the token must not be in an address.
    return _show(Form({"expires_in": "90d"}), minted)


@routes.post("/console/keys/<uid>/revoke")
def revoke_key(uid: str) -> Response:
    api_keys.revoke(web.runtime(), visitor().principal, uid)
    record("key.revoke", target=uid)
    return redirect("keys", done="revoked")
