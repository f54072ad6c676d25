"""Routes of plugins: which keys open them, and that nothing of theirs runs before."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Blueprint, Flask
from flask.testing import FlaskClient

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError
from memservice.hookspecs import hookimpl
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services.auth import api_keys
from memservice.services.auth.principal import Principal
from memservice.settings import load_settings
from memservice.spi.web import ADMIN, OPEN, Access, access

KEYS = {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": "s" * 40}
PATHS = (
    "/undeclared",
    "/open",
    "/admin",
    "/of/w",
    "/public/inherits",
    "/public/strict",
    "/late",
    "/files/style.css",
    "/shown/style.css",
)


class Plugin:
    def __init__(self, folder: Path, wrong: bool = False) -> None:
        self.ran: list[str] = []
        self._folder = str(folder)
        self._wrong = wrong

    @hookimpl
    def memservice_blueprints(self) -> list[Blueprint]:
        extra, public = (
            Blueprint("extra", __name__),
            Blueprint("public", __name__, url_prefix="/public"),
        )
        hidden = Blueprint("hidden", __name__, static_folder=self._folder, static_url_path="/files")
        answer = access(OPEN)(
            Blueprint("shown", __name__, static_folder=self._folder, static_url_path="/shown")
        )
        extra.before_app_request(lambda: self.ran.append("before"))

        def view(name: str) -> dict[str, str]:
            self.ran.append(name)
            return {"name": name}

        extra.add_url_rule(
            "/undeclared", "undeclared", lambda: view("undeclared"), methods=["GET", "POST"]
        )
        extra.add_url_rule(
            "/open", "open", access(OPEN)(lambda: view("open")), methods=["GET", "POST"]
        )
        extra.add_url_rule("/admin", "admin", access(ADMIN)(lambda: view("admin")))
        parameter = "nothing" if self._wrong else "workspace_id"
        extra.add_url_rule(
            "/of/<workspace_id>",
            "of",
            access(Access(workspace=parameter))(lambda workspace_id: view(workspace_id)),
        )
        access(OPEN)(public)
        public.add_url_rule("/inherits", "inherits", lambda: view("inherits"))
        public.add_url_rule("/strict", "strict", access(ADMIN)(lambda: view("strict")))
        return [extra, public, hidden, answer]

    @hookimpl
    def memservice_app_started(self, app: Flask) -> None:
        app.add_url_rule("/late", "late", lambda: {"name": "late"})


def client_and_runtime(
    folder: Path, plugin: Plugin, **overrides: str
) -> tuple[FlaskClient, Runtime]:
    (folder / "style.css").write_text("p {}", encoding="utf-8")
    settings = load_settings(environ={"DB_CONNECTION_URI": "memory://", **overrides}, cwd=folder)
    plugins = load_plugins(settings)
    plugins._manager.register(plugin)
    runtime = open_runtime(settings, "api", plugins=plugins)
    return create_app(runtime=runtime).test_client(), runtime


def opened(client: FlaskClient, key: str | None) -> set[str]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    statuses = {}
    for path in PATHS:
        with client.get(path, headers=headers) as answer:
            statuses[path] = answer.status_code
    assert set(statuses.values()) <= {200, 401}
    return {path for path, status in statuses.items() if status == 200}


def minted(rt: Runtime, request: api_keys.KeyRequest) -> str:
    return api_keys.mint(rt, Principal(admin=True), request).token


FREE = {"/open", "/public/inherits", "/shown/style.css"}


@pytest.mark.slow
def test_routes_are_closed_unless_they_declare_otherwise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Plugin(tmp_path)
    client, rt = client_and_runtime(tmp_path, plugin, **KEYS)
    assert "the route /undeclared of a plugin declares no access" in caplog.text
    assert "/admin" not in caplog.text
    assert opened(client, None) == opened(client, "none") == FREE
    assert plugin.ran == 2 * ["before", "open", "before", "inherits", "before"], (
        "nothing of the plugin runs for those turned away"
    )
    assert opened(client, minted(rt, api_keys.KeyRequest(workspace_id="w"))) == FREE | {"/of/w"}
    for narrow in (
        {"workspace_id": "v"},
        {"workspace_id": "w", "peer_id": "p"},
        {"workspace_id": "w", "session_id": "s"},
    ):
        assert opened(client, minted(rt, api_keys.KeyRequest(**narrow))) == FREE, narrow
    assert opened(client, minted(rt, api_keys.KeyRequest())) == set(PATHS)


def test_without_authentication_plugin_routes_are_closed_to_other_origins(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    client, _ = client_and_runtime(tmp_path, plugin)
    assert opened(client, None) == set(PATHS)
    plugin.ran.clear()
    strange = {"Origin": "https://evil.example"}
    assert client.post("/open", headers=strange).status_code == 400
    assert client.post("/undeclared", data={"a": "b"}, headers=strange).status_code == 400
    assert client.get("/open", headers={"Host": "evil.example"}).status_code == 421
    assert plugin.ran == []
    assert client.post("/open", headers={"Origin": "http://localhost"}).status_code == 200
    assert client.post("/open", json={}, headers=strange).status_code == 200, (
        "a browser has asked by a preflight, which is refused"
    )


@pytest.mark.slow
def test_an_undecidable_access_prevents_the_start(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="/of/<workspace_id> of a plugin declares access by 'nothing'"
    ):
        client_and_runtime(tmp_path, Plugin(tmp_path, wrong=True))
