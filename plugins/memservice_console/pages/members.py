"""Members: the list, invitations, and one of them."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Response, request

from memservice.services.auth.permissions import OF_ROLE, Permission, Role
from memservice.services.members import accounts, links
from memservice.services.members.links import NewLink
from memservice.spi import web
from memservice_console.forms import Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.sign_in import browser
from memservice_console.visitors import visitor

routes = Routes(Permission.MANAGE_MEMBERS)

ALL, SOME = "all", "some"
LIMITS = ((ALL, "All workspaces"), (SOME, "Only these workspaces"))
ROLES = tuple((role.value, role.value.capitalize()) for role in Role)


@routes.get("/console/members")
def members() -> Response:
    return _list(Form({"role": Role.READER.value, "limit": ALL}))


def _list(form: Form, status: int = 200, new_link: NewLink | None = None) -> Response:
    rt, principal = web.runtime(), visitor().principal
    return render(
        "members.html",
        status,
        listing=accounts.browse(rt, principal, request.args.get("after")),
        pending=links.pending(rt, principal),
        form=form,
        new_link=new_link,
        url=None if new_link is None else new_link.url(rt.settings),
        roles=ROLES,
        limits=LIMITS,
        table=[(role.value, sorted(OF_ROLE[role])) for role in Role],
    )


@routes.post("/console/members/invite")
def invite_member() -> Response:
    form = Form.sent()
    new_link = None
    with form.refusals():
        new_link = links.invite(web.runtime(), visitor(), browser(), form["role"], _limit(form))
    return _list(form, 200 if form.ok else 422, new_link)


@routes.post("/console/members/links/<uid>/withdraw")
def withdraw_link(uid: str) -> Response:
    links.withdraw(web.runtime(), visitor(), browser(), uid)
    return redirect("members", done="withdrawn")


@routes.get("/console/members/<uid>")
def member(uid: str) -> Response:
    return _show(uid)


def _show(
    uid: str, form: Form | None = None, status: int = 200, new_link: NewLink | None = None
) -> Response:
    rt = web.runtime()
    account = accounts.get(rt, visitor().principal, uid)
    workspaces = account.workspaces or []
    form_values = {
        "role": account.role,
        "limit": ALL if account.workspaces is None else SOME,
        "workspaces": "\n".join(str(workspace["id"]) for workspace in workspaces),
    }
    return render(
        "member.html",
        status,
        member=account,
        form=form or Form(form_values),
        url=None if new_link is None else new_link.url(rt.settings),
        roles=ROLES,
        limits=LIMITS,
    )


@routes.post("/console/members/<uid>/change")
def change_member(uid: str) -> Response:
    form = Form.sent()
    with form.refusals():
        accounts.change(web.runtime(), visitor(), browser(), uid, form["role"], _limit(form))
    return redirect("member", uid=uid, done="saved") if form.ok else _show(uid, form, 422)


@routes.post("/console/members/<uid>/deactivate")
def deactivate_member(uid: str) -> Response:
    accounts.deactivate(web.runtime(), visitor(), browser(), uid)
    return redirect("member", uid=uid, done="deactivated")


@routes.post("/console/members/<uid>/activate")
def activate_member(uid: str) -> Response:
    accounts.activate(web.runtime(), visitor(), browser(), uid)
    return redirect("member", uid=uid, done="activated")


@routes.post("/console/members/<uid>/end-sessions")
def end_sessions_of_member(uid: str) -> Response:
    accounts.end_sessions(web.runtime(), visitor(), browser(), uid)
    return redirect("member", uid=uid, done="ended")


@routes.post("/console/members/<uid>/new-password")
def new_password_of_member(uid: str) -> Response:
    new_link = links.new_password(web.runtime(), visitor(), browser(), uid)
    return _show(uid, new_link=new_link)


def _limit(form: Form) -> Sequence[str] | None:
    """The ids that were typed, one a line; None: all workspaces were chosen. Anything else that was
    sent is no limit to all: the service refuses an empty list."""
    if form["limit"] == ALL:
        return None
    return [line.strip() for line in form["workspaces"].splitlines() if line.strip()]
