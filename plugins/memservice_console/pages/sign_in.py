"""Signing in, and the form behind a one-time link."""

from __future__ import annotations

from flask import Response, request

from memservice.domain.errors import Busy, NotFound, Unauthorised
from memservice.runtime import Runtime
from memservice.services.members import links, sign_ins, tokens
from memservice.services.members.pauses import Paused
from memservice.spi import web
from memservice_console import rendering
from memservice_console.forms import WHOLE, Form
from memservice_console.rendering import redirect
from memservice_console.routes import PublicRoutes
from memservice_console.sign_in import (
    BROWSER_COOKIE,
    SESSION_COOKIE,
    browser,
    cookie_of,
    keep,
)
from memservice_console.visitors import form_secret

routes = PublicRoutes()


@routes.get("/console/sign-in")
def sign_in() -> Response:
    return show()


def show(form: Form | None = None, status: int = 200) -> Response:
    """The page with the two forms."""
    return rendering.page(
        "sign_in.html",
        status,
        visitor=None,
        form=form or Form(),
        csrf_token=tokens.csrf_token(form_secret()),
    )


@routes.post("/console/sign-in")
def sign_in_with_password() -> Response:
    form = Form.sent()
    try:
        signed_in = sign_ins.with_password(
            web.runtime(),
            browser(),
            form["name"],
            form["password"],
            cookie_of(BROWSER_COOKIE),
            cookie_of(SESSION_COOKIE),
        )
    except Paused as error:
        return _paused(form, error)
    except Busy as error:
        form.add(WHOLE, str(error))
        return show(form, 503)
    except Unauthorised as error:
        form.add(WHOLE, str(error))
        return show(form, 403)
    return keep(redirect("home"), signed_in)


def _paused(form: Form, error: Paused) -> Response:
    form.add(WHOLE, str(error))
    answer = show(form, 429)
    answer.headers["Retry-After"] = str(error.retry_after)
    return answer


@routes.post("/console/sign-in/key")
def sign_in_with_key() -> Response:
    form = Form.sent()
    try:
        signed_in = sign_ins.with_key(
            web.runtime(), browser(), form["key"], cookie_of(SESSION_COOKIE)
        )
    except Paused as error:
        return _paused(form, error)
    except Unauthorised as error:
        form.add("key", str(error))
        return show(form, 403)
    return keep(redirect("home"), signed_in)


@routes.get("/console/link")
def one_time_link() -> Response:
    return _show_link(request.args.get("token", ""), Form())


def _show_link(token: str, form: Form, status: int = 200) -> Response:
    rt: Runtime = web.runtime()
    try:
        opened = links.read(rt, token)
    except NotFound as error:
        return rendering.page("refused.html", 404, visitor=None, status=404, text=str(error))
    return rendering.page(
        "link.html",
        status,
        visitor=None,
        form=form,
        opened=opened,
        token=token,
        csrf_token=tokens.csrf_token(form_secret()),
    )


@routes.post("/console/link")
def use_link() -> Response:
    form = Form.sent()
    token = form["token"]
    if form["password"] != form["repeated"]:
        form.add("repeated", "The two passwords differ")
        return _show_link(token, form, 422)
    with form.refusals():
        member = links.accept(web.runtime(), browser(), token, form["name"], form["password"])
    if not form.ok:
        return _show_link(token, form, 422)
    signed_in = sign_ins.after_link(web.runtime(), browser(), member, cookie_of(SESSION_COOKIE))
    return keep(redirect("home"), signed_in)
