"""How the modules in `pages` declare their routes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from flask import Blueprint
from flask.typing import ResponseReturnValue

from memservice.services.auth.permissions import Permission
from memservice_console.visitors import check_form, visitor

Handler = TypeVar("Handler", bound=Callable[..., ResponseReturnValue])


class Routes:
    """The routes of one module. Each view runs for a visitor only; one that takes a form runs
    only if the form carries the visitor's token."""

    def __init__(self, needs: Permission | None = None) -> None:
        """`needs`: the permission that every page of the module needs; None: the services alone
        decide."""
        self._needs = needs
        self._views: list[tuple[str, str, Callable[..., ResponseReturnValue]]] = []

    def get(self, rule: str) -> Callable[[Handler], Handler]:
        return self._route("GET", rule)

    def post(self, rule: str) -> Callable[[Handler], Handler]:
        return self._route("POST", rule)

    def _route(self, method: str, rule: str) -> Callable[[Handler], Handler]:
        def declare(view: Handler) -> Handler:
            @wraps(view)
            def guarded(**path: str) -> ResponseReturnValue:
                known = visitor()
                if self._needs is not None:
                    known.require(self._needs)
                if method == "POST":
                    check_form()
                return view(**path)

            self._views.append((method, rule, guarded))
            return view

        return declare

    def add_to(self, blueprint: Blueprint) -> None:
        for method, rule, view in self._views:
            blueprint.add_url_rule(rule, view.__name__, view, methods=[method])
