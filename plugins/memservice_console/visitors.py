"""The visitor of a page: what it may see and do. Every page gets one before anything else."""

from __future__ import annotations

from flask import Response, g, request

from memservice.domain.errors import Refused, Unauthorised
from memservice.services.auth.principal import Principal
from memservice.services.members import tokens, visitors
from memservice.services.members.sign_ins import NARROW
from memservice.services.members.visitors import Visitor
from memservice.spi import web
from memservice_console.sign_in import (
    CSRF_FIELD,
    SESSION_COOKIE,
    STALE_FORM,
    cookie_of,
    set_cookie,
)

FORM_COOKIE = "memservice_form"
"""Holds a secret for forms before the sign-in, and while authentication is off."""

PROXY_HEADERS = ("Forwarded", "X-Forwarded-Host", "X-Real-IP", "Via", "CF-Connecting-IP")
"""A request with one of these came through a proxy, so its sender may be anywhere."""


class SignInRequired(Exception):
    """The request carries nothing that says who sends it."""


def visitor() -> Visitor:
    """The visitor of the current request. Raises `SignInRequired`, or `Unauthorised` for a key that
    is not valid or too narrow."""
    if "console_visitor" not in g:
        g.console_visitor = _recognise()
        # Pages of plugins call services as this visitor.
        web.admit(g.console_visitor.principal)
    page_visitor: Visitor = g.console_visitor
    return page_visitor


def _recognise() -> Visitor:
    if not web.requires_keys():
        return _without_authentication()
    if request.headers.get("Authorization", "").lower().startswith("bearer "):
        return _of_bearer(web.principal())
    page_visitor = visitors.visitor_of(web.runtime(), cookie_of(SESSION_COOKIE))
    if page_visitor is None:
        raise SignInRequired
    if _is_narrow(page_visitor.principal):
        raise Unauthorised(NARROW)
    return page_visitor


def _without_authentication() -> Visitor:
    # A proxy's header names the sender behind it.
    forwarded = request.headers.get("X-Forwarded-For", "").split(",")
    senders = [name for name in forwarded if name.strip()]
    if any(name in request.headers for name in PROXY_HEADERS):
        raise Refused(visitors.LOOPBACK_ONLY)
    host = request.host.rpartition(":")[0] if _has_port(request.host) else request.host
    visitors.require_loopback([request.remote_addr, host, *senders])
    return visitors.visitor_without_authentication(web.runtime(), form_secret())


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdecimal() and not host.endswith("]")


def _is_narrow(principal: Principal) -> bool:
    return principal.is_peer or principal.is_session or principal.collection is not None


def _of_bearer(principal: Principal) -> Visitor:
    if _is_narrow(principal) or not (principal.admin or principal.workspace_id):
        raise Unauthorised(NARROW)
    token = request.headers["Authorization"].strip().partition(" ")[2].strip()
    return visitors.visitor_of_bearer(web.runtime(), token, principal)


def form_secret() -> str:
    """Of this browser, for forms without a session; `keep_form_secret` sends a new one."""
    page_visitor = cookie_of(FORM_COOKIE)
    if page_visitor:
        return page_visitor
    if "console_form_secret" not in g:
        g.console_form_secret = tokens.new_token()
    secret: str = g.console_form_secret
    return secret


def keep_form_secret(answer: Response) -> None:
    if "console_form_secret" in g:
        set_cookie(answer, FORM_COOKIE, g.console_form_secret)


def check_form() -> None:
    """Raises `Unauthorised` for a form without the visitor's token."""
    token = visitor().csrf_token
    if token and not tokens.is_same(token, request.form.get(CSRF_FIELD, "")):
        raise Unauthorised(STALE_FORM)
