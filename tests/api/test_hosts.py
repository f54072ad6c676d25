"""`ALLOWED_HOSTS`: the names that the service answers to, so that no web page can point its own
name at it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.test import EnvironBuilder, run_wsgi_app

from memservice.app import create_app
from memservice.domain.errors import ConfigurationError
from memservice.settings import load_settings

KEYS = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40}


@cache
def client(**environ: str) -> FlaskClient:
    return create_app(
        load_settings(environ={"DB_CONNECTION_URI": "memory://", **environ}, cwd=Path("/"))
    ).test_client()


def status(web: FlaskClient, host: str) -> int:
    return web.get("/health", headers={"Host": host}).status_code


ALWAYS = [
    "127.0.0.1", "127.0.0.1:8000", "192.168.1.7:8000", "[::1]", "[::1]:8000", "[fe80::1]:80",
    "localhost", "localhost:8000", "LocalHost.",
    "app.localhost:3000", "a.b.localhost",
]  # fmt: skip
OTHERS = [
    "evil.example", "evil.example:8000", "localhost.evil.example", "evil-localhost",
    "127.0.0.1.evil.example", "0x7f.1", "127.1", "api",
    "", ":8000", "[evil.example]", "[localhost]", "localhost:80:80", "localhost:x",
    "evil.example/127.0.0.1", "user@localhost",
    "localhost, evil.example", "..localhost.evil", "[::1",
]  # fmt: skip


@pytest.mark.parametrize("host", ALWAYS)
def test_ip_addresses_and_localhost_are_accepted(host: str) -> None:
    assert status(client(), host) == 200
    assert status(client(ALLOWED_HOSTS="memory.example.com"), host) == 200


@pytest.mark.parametrize("host", OTHERS)
def test_unknown_hosts_are_refused(host: str) -> None:
    assert status(client(), host) == 421
    assert status(client(ALLOWED_HOSTS="memory.example.com", **KEYS), host) == 421


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/health"),
        ("GET", "/nothing"),
        ("OPTIONS", "/v3/workspaces"),
        ("DELETE", "/v3/workspaces/w"),
        ("GET", "/docs"),
        ("POST", "/v3/workspaces/list"),
        ("POST", "/v3/workspaces/"),
        ("GET", "/openapi.json"),
        ("GET", "/metrics"),
        ("HEAD", "/health"),
    ],
)
def test_the_host_is_checked_before_the_route(method: str, path: str) -> None:
    """An attack by DNS rebinding: the page's name leads here, so that it is of our origin."""
    page = {
        "Host": "evil.example:8000",
        "Origin": "http://evil.example:8000",
        "Access-Control-Request-Method": "POST",
    }
    answer = client(METRICS_ENABLED="true").open(path, method=method, headers=page)
    assert answer.status_code == 421
    if method != "HEAD":
        assert "ALLOWED_HOSTS" in answer.get_json()["detail"]
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert answer.headers["X-Request-Id"]


def test_configured_hosts_are_accepted_in_any_spelling() -> None:
    web = client(ALLOWED_HOSTS="Memory.Example.com, .internal.example., bücher.example")
    for host in (
        "memory.example.com",
        "MEMORY.example.com.:443",
        "internal.example",
        "a.b.internal.example",
        "xn--bcher-kva.example:80",
    ):
        assert status(web, host) == 200, host
    for host in ("example.com", "x.memory.example.com", "notinternal.example"):
        assert status(web, host) == 421, host


def test_the_host_that_the_server_is_bound_to_is_accepted() -> None:
    assert status(client(HOST="memory.lan"), "memory.lan:8000") == 200
    assert status(client(HOST="memory.lan"), "other.lan:8000") == 421


def test_a_star_accepts_every_host() -> None:
    assert status(client(ALLOWED_HOSTS="*"), "evil.example") == 200


def test_with_authentication_every_host_is_accepted_by_default() -> None:
    assert status(client(**KEYS), "api:8000") == 200
    assert status(client(ALLOWED_HOSTS="memory.example.com", **KEYS), "memory.example.com") == 200


def test_a_request_without_a_host_is_accepted() -> None:
    """HTTP/1.0, which health checks of old load balancers speak."""
    app = client().application
    environ = EnvironBuilder("/health").get_environ()
    del environ["HTTP_HOST"]
    environ["SERVER_NAME"] = "evil.example"
    assert run_wsgi_app(app, environ)[1].startswith("200")


@pytest.mark.parametrize(
    "wrong",
    [
        "https://memory.example.com",
        "memory.example.com:8000",
        "a/b",
        "*.example.com",
        "me@x",
        ".",
        "a b",
    ],
)
def test_an_invalid_host_name_prevents_the_start(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=r"ALLOWED_HOSTS: .* is no host name"):
        load_settings(environ={"ALLOWED_HOSTS": f'["{wrong}"]'}, cwd=Path("/"))
