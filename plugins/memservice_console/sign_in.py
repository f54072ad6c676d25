"""What a browser carries: the cookies of its session, and those by which it is known."""

from __future__ import annotations

import ipaddress

from flask import Response, request

from memservice.services.members.sign_ins import SignedIn
from memservice.services.members.visitors import Browser
from memservice.settings import Settings
from memservice.spi import web

CSRF_FIELD = "csrf_token"
STALE_FORM = "This form is no longer valid, or another page sent it: reload the page and try again"

SESSION_COOKIE = "memservice_session"
"""Holds the secret of a browser session (`services.members.sign_ins`)."""
BROWSER_COOKIE = "memservice_browser"
"""By this the browser is known at its next sign-in, and not paused for the failures of others."""
BROWSER_SECONDS = 400 * 24 * 3600
"""The longest time for which browsers keep a cookie."""
OVER_TLS = "__Host-"
"""Before the name of a cookie that only this host can set, over TLS only (RFC 6265bis)."""


def is_secure() -> bool:
    """Whether the browser uses TLS: as far as the server sees, or as the setting says."""
    settings: Settings = web.settings()
    return request.is_secure or (settings.console.url or "").lower().startswith("https://")


def named(cookie: str) -> str:
    return f"{OVER_TLS}{cookie}" if is_secure() else cookie


def cookie_of(name: str) -> str | None:
    return request.cookies.get(named(name))


def set_cookie(answer: Response, name: str, value: str, seconds: int | None = None) -> None:
    """For this host, all its paths, requests of its own pages, and no script. Without `seconds`:
    until the browser is closed."""
    answer.set_cookie(
        named(name),
        value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="Strict",
        secure=is_secure(),
    )


def keep(answer: Response, signed_in: SignedIn) -> Response:
    """Give the browser its new session."""
    set_cookie(answer, SESSION_COOKIE, signed_in.session_id)
    if signed_in.browser_id is not None:
        set_cookie(answer, BROWSER_COOKIE, signed_in.browser_id, BROWSER_SECONDS)
    return answer


def forget(answer: Response) -> Response:
    answer.delete_cookie(
        named(SESSION_COOKIE), path="/", httponly=True, samesite="Strict", secure=is_secure()
    )
    return answer


def browser() -> Browser:
    """The sender of the current request, for the audit log and the pauses between attempts."""
    return Browser(_address(), request.headers.get("User-Agent", "")[:300])


def _address() -> str:
    """The address of the sender; behind a proxy that the settings name, the last one that the proxy
    added. What stands before that in the header, the sender may have made up."""
    settings: Settings = web.settings()
    address = request.remote_addr or ""
    if address not in settings.console.proxies:
        return address
    forwarded = request.headers.getlist("X-Forwarded-For")
    last = ",".join(forwarded).rpartition(",")[2].strip()
    return ip_of(last) or address


def ip_of(text: str) -> str | None:
    """The IP address in an entry of `X-Forwarded-For`, which some proxies write with a port; None
    for anything else."""
    host = text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        host = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None
