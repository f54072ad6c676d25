"""memservice in the process of a test, for plugins of hooks, routes, pages and commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from flask.testing import FlaskClient
from msgspec import Struct

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.runtime import Runtime
from memservice.services.auth import api_keys
from memservice.services.auth.principal import Principal
from memservice.settings import load_settings

SIGNING_SECRET = "a secret for the keys of one test, of no other use"


class Application(Struct, frozen=True):
    """The application with an empty store, as a server has it."""

    client: FlaskClient
    """Calls its routes."""
    runtime: Runtime
    """Its opened parts: `runtime.storage`, `runtime.plugins`, and the first argument of every
    service."""

    def headers(self, workspace: str | None = None, peer: str | None = None) -> dict[str, str]:
        """The headers of a request with a new key: of an administrator, of a workspace, or of one
        of its peers. Only for an application with `auth`."""
        request = api_keys.KeyRequest(workspace_id=workspace, peer_id=peer)
        token = api_keys.mint(self.runtime, Principal(admin=True), request).token
        return {"Authorization": f"Bearer {token}"}


@contextmanager
def application(*, auth: bool = False, **variables: str) -> Iterator[Application]:
    """memservice with every installed plugin and a storage in memory. `variables` are settings as
    in the environment, such as `PLUGIN_NAME__FIELD`; those of the process do not count. `auth`:
    requests need keys. There is no worker: background work waits.

    Raises `ConfigurationError` for settings with which no server would start.
    """
    environment = {"DB_CONNECTION_URI": "memory://", "LOG_LEVEL": "warning", **variables}
    if auth:
        environment |= {"AUTH_USE_AUTH": "true", "AUTH_JWT_SECRET": SIGNING_SECRET}
    with TemporaryDirectory(prefix="memservice-test-") as folder:
        settings = load_settings(environ=environment, cwd=Path(folder))
        runtime = open_runtime(settings, "api")
        try:
            runtime.storage.migrate()
            yield Application(create_app(runtime=runtime).test_client(), runtime)
        finally:
            runtime.close()
