"""Pages: templates, addresses and headers."""

from __future__ import annotations

import posixpath
from functools import cache
from json import dumps
from typing import Any

from flask import Response, current_app, g, request, url_for
from jinja2 import Environment, PackageLoader, StrictUndefined

import memservice
from memservice.services.auth.permissions import Permission
from memservice.services.members.visitors import Visitor
from memservice.services.tasks import jobs
from memservice.spi import web
from memservice_console import shown
from memservice_console.sign_in import CSRF_FIELD
from memservice_console.visitors import visitor

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, browsers send forms with `Origin: null`, which the server refuses.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

DONE = {
    "created": "Created.",
    "saved": "Saved.",
    "deleted": "Deleted. Its data is erased in the background.",
    "message-deleted": "Deleted. What remains of it elsewhere is erased in the background.",
    "invalidated": "Invalidated.",
    "corrected": "Corrected. The conclusion before it is kept as superseded.",
    "restored": "Restored.",
    "retried": "The chosen tasks are tried again.",
    "cancelled": "The chosen tasks were cancelled: they rest as failed.",
    "purged": "The tasks were erased.",
    "revoked": "The key was revoked.",
    "tested": "A test event is on its way to every endpoint of the workspace.",
    "password": "The password was changed, and all other sessions ended.",
    "ended": "Ended.",
    "signed-out": "You are signed out.",
    "withdrawn": "The link was withdrawn.",
    "deactivated": "The member was deactivated, and all its sessions ended.",
    "activated": "The member may sign in again.",
    "redelivered": "The event is delivered again.",
}
"""What a page says after a form, by the query parameter `done`."""
MENU: tuple[tuple[str, str, Permission | None, bool], ...] = (
    ("home", "Home", None, True),
    ("instance", "Instance", None, True),
    ("workspaces", "Workspaces", None, False),
    ("jobs", "Jobs", None, False),
    ("usage", "Usage", None, False),
    ("keys", "Keys", Permission.MANAGE_KEYS, True),
    ("settings", "Settings and plugins", Permission.VIEW_SETTINGS, True),
    ("members", "Members", Permission.MANAGE_MEMBERS, True),
    ("audit_log", "Audit log", Permission.VIEW_AUDIT_LOG, True),
)
"""Endpoint, text, the permission that it needs (None: to view), and whether it is for visitors of
all workspaces only."""
PAGES = "memservice_console_pages"
"""Under which `app.extensions` holds the pages of plugins."""


def link(endpoint: str, **values: Any) -> str:
    """The address of a page, relative to the present one, so that a proxy may add a prefix."""
    path, mark, rest = address(endpoint, **values).partition("?")
    path, hash_mark, fragment = path.partition("#")
    folder, last = posixpath.split(path)
    up = posixpath.relpath(folder, posixpath.dirname(g.get("console_page", request.path)))
    relative = last if up == "." else f"{up}/{last}"
    return f"{relative}{mark}{rest}{hash_mark}{fragment}"


def address(endpoint: str, **values: Any) -> str:
    """The path of a page of the console, without a proxy's prefix."""
    return url_for(f"console.{endpoint}", **values).removeprefix(request.script_root)


def counted(value: int) -> str:
    """A number of tasks, which are counted up to a limit."""
    return f"{shown.number(value)} or more" if value >= jobs.MAX_COUNTED else shown.number(value)


@cache
def environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("memservice_console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown.visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "moment": shown.moment,
        "duration": shown.duration,
        "number": shown.number,
        "money": shown.money,
        "counted": counted,
        "exact": shown.exact,
        "json": shown.as_json,
        "with_code": shown.with_code,
        "pair": lambda name: (name, name),
    }
    environment.globals |= {  # pyrefly: ignore[bad-assignment]
        "link": link,
        "bars": shown.bars,
        "csrf_field": CSRF_FIELD,
        "Permission": Permission,
        "version": memservice.__version__,
    }
    return environment


def render(template: str, status: int = 200, /, **values: Any) -> Response:
    """A page for the visitor of the current request."""
    return page(template, status, visitor=visitor(), **values)


def page(
    template: str, status: int = 200, /, *, visitor: Visitor | None, **values: Any
) -> Response:
    text = (
        environment()
        .get_template(template)
        .render(
            visitor=visitor,
            here=request.endpoint,
            is_open=not web.requires_keys(),
            done=DONE.get(request.args.get("done", "")),
            menu=_menu(visitor),
            plugin_pages=_plugin_pages(visitor),
            **values,
        )
    )
    return Response(text, status, mimetype="text/html", headers={"Cache-Control": "no-store"})


def _menu(visitor: Visitor | None) -> list[tuple[str, str]]:
    if visitor is None:
        return []
    return [
        (endpoint, text)
        for endpoint, text, permission, everywhere in MENU
        if visitor.may(permission or Permission.VIEW)
        and (visitor.workspaces is None or not everywhere)
    ]


def _plugin_pages(visitor: Visitor | None) -> list[web.ConsolePage]:
    if visitor is None:
        return []
    pages: dict[str, web.ConsolePage] = current_app.extensions[PAGES]
    return [page for page in pages.values() if may_see(visitor, page)]


def may_see(visitor: Visitor, page: web.ConsolePage) -> bool:
    return page.access.open or visitor.may(Permission.MANAGE_KEYS) or visitor.principal.admin


def redirect(endpoint: str, **values: Any) -> Response:
    """To a page, with GET."""
    return Response(b"", 303, headers={"Location": link(endpoint, **values)})


def json(value: Any) -> Response:
    return Response(dumps(value), mimetype="application/json")
