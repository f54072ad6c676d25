"""The visitor's own account: password and sessions."""

from __future__ import annotations

from flask import Response

from memservice.services.members import accounts, sign_ins
from memservice.services.members.pauses import Paused
from memservice.spi import web
from memservice_console.forms import WHOLE, Form
from memservice_console.rendering import redirect, render
from memservice_console.routes import Routes
from memservice_console.sign_in import browser, forget
from memservice_console.visitors import visitor

routes = Routes()


@routes.get("/console/account")
def account() -> Response:
    return _show(Form())


def _show(form: Form, status: int = 200) -> Response:
    return render(
        "account.html", status, form=form, sessions=sign_ins.sessions(web.runtime(), visitor())
    )


@routes.post("/console/account/password")
def change_password() -> Response:
    form = Form.sent()
    if form["new_password"] != form["repeated"]:
        form.add("repeated", "The two passwords differ")
        return _show(form, 422)
    try:
        with form.refusals():
            accounts.change_password(
                web.runtime(), visitor(), browser(), form["password"], form["new_password"]
            )
    except Paused as error:
        form.add(WHOLE, str(error))
        answer = _show(form, 429)
        answer.headers["Retry-After"] = str(error.retry_after)
        return answer
    return redirect("account", done="password") if form.ok else _show(form, 422)


@routes.post("/console/account/sessions/<uid>/end")
def end_session(uid: str) -> Response:
    sign_ins.end(web.runtime(), visitor(), browser(), uid)
    return redirect("account", done="ended")


@routes.post("/console/account/sign-out-everywhere")
def sign_out_everywhere() -> Response:
    sign_ins.sign_out_everywhere(web.runtime(), visitor(), browser())
    return forget(redirect("sign_in", done="signed-out"))


@routes.post("/console/sign-out")
def sign_out() -> Response:
    sign_ins.sign_out(web.runtime(), visitor(), browser())
    return forget(redirect("sign_in", done="signed-out"))
