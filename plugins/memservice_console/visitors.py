"""The visitor of a page: what it may see and do. Every page gets one before anything else."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from flask import g, request

from memservice.domain.errors import Unauthorised
from memservice.services.auth.principal import Principal
from memservice.spi import web

CSRF_FIELD = "csrf_token"
NARROW = "The console needs an admin key, or a key of a whole workspace"
STALE_FORM = "This form is no longer valid, or was sent by another page: reload it and try again"


class SignInRequired(Exception):
    """The request carries nothing that says who sends it."""


@dataclass(frozen=True, slots=True)
class Visitor:
    principal: Principal
    """What services get: it carries the visitor's bounds."""
    name: str | None = None
    """Shown in the header; None while authentication is off."""
    csrf_token: str | None = None
    """Every form of the visitor must carry it. None where the browser sends nothing by itself that
    lets the visitor in, so that no other page can send a form in its name."""

    @property
    def admin(self) -> bool:
        return self.principal.admin


def visitor() -> Visitor:
    """The visitor of the current request. Raises `SignInRequired`, or `Unauthorised` for a key that
    is not valid or too narrow."""
    if "console_visitor" not in g:
        g.console_visitor = _recognise()
    known: Visitor = g.console_visitor
    return known


def _recognise() -> Visitor:
    if not web.requires_keys():
        return Visitor(web.principal())
    if "Authorization" not in request.headers:
        raise SignInRequired
    principal: Principal = web.principal()
    if principal.is_peer or principal.is_session or principal.collection is not None:
        raise Unauthorised(NARROW)
    name = "admin key" if principal.admin else f"key of {principal.workspace_id}"
    return Visitor(principal, name)


def check_form() -> None:
    """Raises `Unauthorised` for a form without the visitor's token."""
    token = visitor().csrf_token
    if token is not None and not hmac.compare_digest(
        token.encode(), request.form.get(CSRF_FIELD, "").encode()
    ):
        raise Unauthorised(STALE_FORM)
