"""How the modules in `pages` declare their routes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from memservice.domain.errors import Unauthorised
from memservice.services.auth.permissions import Permission
from memservice.services.members import tokens
from memservice_console.sign_in import CSRF_FIELD, STALE_FORM
from memservice_console.visitors import check_form, form_secret, visitor

Handler = TypeVar("Handler", bound=Callable[..., ResponseReturnValue])


class RouteTable(ABC):
    """Routes that are declared with decorators and added to a blueprint later. `_check` runs before
    each view."""

    def __init__(self) -> None:
        self._views: list[tuple[str, str, Callable[..., ResponseReturnValue]]] = []

    def get(self, rule: str) -> Callable[[Handler], Handler]:
        return self._route("GET", rule)

    def post(self, rule: str) -> Callable[[Handler], Handler]:
        return self._route("POST", rule)

    @abstractmethod
    def _check(self, method: str) -> None:
        """Raises an error for a request that must not reach the view."""

    def _route(self, method: str, rule: str) -> Callable[[Handler], Handler]:
        def declare(view: Handler) -> Handler:
            @wraps(view)
            def guarded(**path: str) -> ResponseReturnValue:
                self._check(method)
                return view(**path)

            self._views.append((method, rule, guarded))
            return view

        return declare

    def add_to(self, blueprint: Blueprint) -> None:
        for method, rule, view in self._views:
            blueprint.add_url_rule(rule, view.__name__, view, methods=[method])


class Routes(RouteTable):
    """The routes of one module. Each view runs for a visitor only; one that takes a form runs
    only if the form carries the visitor's token."""

    def __init__(self, needs: Permission | None = None) -> None:
        """`needs`: the permission that every page of the module needs; None: the services alone
        decide."""
        super().__init__()
        self._needs = needs

    def _check(self, method: str) -> None:
        page_visitor = visitor()
        if self._needs is not None:
            page_visitor.require(self._needs)
        if method == "POST":
            check_form()


class PublicRoutes(RouteTable):
    """Routes of pages that need no visitor. One that takes a form runs only if the form carries the
    token of the cookie that this browser got with it: no other page can sign a browser in."""

    def _check(self, method: str) -> None:
        if method != "POST":
            return
        expected = tokens.csrf_token(form_secret())
        if not tokens.is_same(expected, request.form.get(CSRF_FIELD, "")):
            raise Unauthorised(STALE_FORM)
