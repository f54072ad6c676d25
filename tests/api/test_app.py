"""Making the application."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Blueprint, Flask
from werkzeug.routing import Map, Rule

from memservice.app import LateRule, create_app
from memservice.compose import open_runtime
from memservice.hookspecs import hookimpl
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.settings import load_settings

MEMORY = load_settings(environ={}, overrides={"DB_CONNECTION_URI": "memory://"})


@pytest.mark.slow
def test_nothing_is_opened_until_a_request_needs_it() -> None:
    nowhere = load_settings(environ={}, overrides={"DB_CONNECTION_URI": "nosuchstorage://x"})
    client = create_app(nowhere).test_client()
    assert client.get("/health").status_code == 200
    assert client.get("/openapi.json").status_code == 200
    assert client.post("/v3/workspaces/list?page=0").status_code == 422
    assert client.post("/v3/workspaces/list").status_code == 500


def test_concurrent_requests_open_one_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Runtime] = []
    original = Runtime.__init__

    def counting(self: Runtime, *args: Any, **kwargs: Any) -> None:
        opened.append(self)
        original(self, *args, **kwargs)

    monkeypatch.setattr(Runtime, "__init__", counting)
    app = create_app(MEMORY)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(
            pool.map(lambda _: app.test_client().post("/v3/workspaces/list").status_code, range(16))
        )
    assert statuses == [200] * 16
    assert len(opened) == 1
    app.extensions["memservice"].close()


@pytest.mark.slow
def test_applications_share_nothing() -> None:
    one, two = create_app(MEMORY), create_app(MEMORY)
    assert one.test_client().post("/v3/workspaces", json={"id": "a"}).status_code == 201
    assert two.test_client().post("/v3/workspaces", json={"id": "a"}).status_code == 201
    assert one.test_client().post("/v3/workspaces", json={"id": "a"}).status_code == 200


class Plugin:
    """Adds a route of its own, one that memservice has, and listens for the start."""

    def __init__(self) -> None:
        self.started: list[Flask] = []

    @hookimpl
    def memservice_blueprints(self) -> list[Blueprint]:
        extra = Blueprint("extra", __name__)
        extra.add_url_rule("/extra", "extra", lambda: {"extra": True})
        extra.add_url_rule("/health", "health", lambda: {"status": "usurped"})
        return [extra]

    @hookimpl
    def memservice_app_started(self, app: Flask) -> None:
        self.started.append(app)


@pytest.mark.slow
def test_plugins_may_add_routes_but_not_replace_core_routes() -> None:
    plugin = Plugin()
    plugins = load_plugins(MEMORY)
    plugins._manager.register(plugin)
    app = create_app(runtime=open_runtime(MEMORY, "api", plugins=plugins))
    assert plugin.started == [app]
    client = app.test_client()
    assert client.get("/extra").get_json() == {"extra": True}
    assert client.get("/extra").headers["X-Request-Id"]
    assert client.get("/health").get_json() == {"status": "ok"}


@pytest.mark.slow
def test_limits_follow_the_settings() -> None:
    overrides = {
        "DB_CONNECTION_URI": "memory://",
        "MAX_MESSAGE_SIZE": "10",
        "GET_CONTEXT_MAX_TOKENS": "500",
        "CORS_ORIGINS": '["*"]',
    }
    client = create_app(load_settings(environ={}, overrides=overrides)).test_client()

    def send(content: str) -> int:
        return client.post(
            "/v3/workspaces/w/sessions/s/messages",
            json={"messages": [{"content": content, "peer_id": "p"}]},
        ).status_code

    assert send("x" * 10) == 201
    assert send("x" * 11) == 422
    assert client.get("/v3/workspaces/w/sessions/s/context?tokens=500").status_code == 200
    assert client.get("/v3/workspaces/w/sessions/s/context?tokens=501").status_code == 422
    document = client.get("/openapi.json").get_json()
    assert (
        document["components"]["schemas"]["MessageCreate"]["properties"]["content"]["maxLength"]
        == 10
    )
    answer = client.get("/health", headers={"Origin": "http://any.example"})
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer.headers


NEW_SERVER = """
import json, sys

SDK = {"mcp", "mcp_types", "pydantic", "starlette"}

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in SDK:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

if sys.argv[1] == "without":
    sys.meta_path.insert(0, Missing())
from memservice.app import create_app
from memservice.settings import load_settings

def loaded():
    return sorted({name.partition(".")[0] for name in sys.modules})

app = create_app(load_settings(environ={"DB_CONNECTION_URI": "memory://"}))
created = loaded()
client = app.test_client()
assert client.post("/v3/workspaces/list", headers={"Authorization": "Bearer x"}).status_code == 200
requested = loaded()
answer = client.post("/mcp", json={})
print(json.dumps([created, requested, answer.status_code, answer.get_json().get("detail")]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("sdk", [pytest.param("with", marks=pytest.mark.heavy), "without"])
def test_a_new_server_imports_only_what_it_needs(sdk: str) -> None:
    """No drivers, models and servers to create the application, nothing of JWT for a request
    without authentication, and the SDK of MCP, which may be missing, for its requests."""
    result = subprocess.run(
        [sys.executable, "-c", NEW_SERVER, sdk], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    created, requested, status, detail = json.loads(result.stdout)
    models = {"rs_bpe", "pysbd"}
    drivers = {"sqlite3", "redis", "rq", "httpx", "alembic", "sqlalchemy"}
    assert not {*models, *drivers, "gunicorn", "jwt"} & set(created)
    assert not {"jwt", "mcp", "mcp_types", "pydantic", "starlette"} & set(requested)
    if sdk == "without":
        assert status == 405
        assert detail.startswith("MCP needs the package mcp")
        assert "pip install 'memservice[mcp]'" in detail


@pytest.mark.slow
def test_routes_build_the_urls_that_werkzeug_builds() -> None:
    """Compared function by function: tests share what is compiled for equal routes."""
    rules = [rule for rule in create_app(MEMORY).url_map.iter_rules() if not rule.defaults]
    assert len(rules) > 200
    for rule in rules:
        assert isinstance(rule, LateRule)
        values = {name: f"a/ö {name}" for name in rule.arguments} | {"page": "2"}
        for unknown in (True, False):
            plain = Rule._compile_builder(rule, unknown)(rule, **values)
            assert rule._compile_builder(unknown)(rule, **values) == plain


def test_an_application_compiles_no_function_for_urls_that_nobody_builds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    original = Rule._compile_builder

    def counting(rule: Rule, append_unknown: bool = True) -> Any:
        compiled.append(rule.rule)
        return original(rule, append_unknown)

    monkeypatch.setattr(Rule, "_compile_builder", counting)
    adapter = Map([LateRule("/a/<name>", endpoint="a"), LateRule("/b", endpoint="b")]).bind("x")
    assert compiled == []
    assert [adapter.build("a", {"name": "1"}) for _ in range(2)] == ["/a/1"] * 2
    assert compiled == ["/a/<name>"]
