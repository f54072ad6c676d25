"""The routes of the second generation in one workspace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from api.conftest import Api, _numbers
from memservice.runtime import Runtime
from support.stores.stores import undone

CLIENTS = {
    "1.0.1": (
        "v1",
        {
            "User-Agent": "Honcho/Python 1.0.1",
            "X-Stainless-Lang": "python",
            "X-Stainless-Package-Version": "1.0.1",
        },
    ),
    "1.1.0": (
        "v2",
        {
            "User-Agent": "Honcho/Python 1.1.0",
            "X-Stainless-Lang": "python",
            "X-Stainless-Package-Version": "1.1.0",
        },
    ),
    "1.8.0": ("v2", {"User-Agent": "AsyncHoncho/Python 1.8.0"}),
    "1.11.0": (
        "v2",
        {
            "User-Agent": "Honcho/Python 1.11.0",
            "X-Stainless-Lang": "python",
            "X-Stainless-Package-Version": "1.11.0",
        },
    ),
    "js 1.8.0": ("v2", {"X-Stainless-Lang": "js", "X-Stainless-Package-Version": "1.8.0"}),
    "js 2.2.0": ("v2", {"User-Agent": "Honcho/JS 2.2.0"}),
}
"""By version of the published client: the generation of its paths, and its headers."""


class V2Client(Api):
    """Like `Api`, with paths relative to the workspace in this generation. `client`: one of
    `CLIENTS`; None: a client without identifying headers."""

    def __init__(
        self, app: Flask, runtime: Runtime, workspace: str, client: str | None = None
    ) -> None:
        super().__init__(app, runtime, workspace)
        self.prefix, self.headers = ("v2", {}) if client is None else CLIENTS[client]

    def call(self, method: str, path: str = "", body: Any = ..., **options: Any) -> TestResponse:
        url = (
            path[1:]
            if path.startswith("//")
            else f"/{self.prefix}/workspaces/{self.workspace}{path}"
        )
        if body is not ...:
            options["json"] = body
        return self.client.open(
            url, method=method, headers={**self.headers, **options.pop("headers", {})}, **options
        )

    def as_client(self, name: str) -> V2Client:
        """The same workspace, called by a published client."""
        return V2Client(self.app, self.runtime, self.workspace, name)

    @property
    def newest(self) -> Api:
        """The same workspace in the third generation."""
        return Api(self.app, self.runtime, self.workspace)

    def create(self) -> Any:
        return self.ok(self.post(f"//{self.prefix}/workspaces", {"id": self.workspace}))

    def peer(self, name: str, **fields: Any) -> Any:
        return self.ok(self.post("/peers", {"id": name, **fields}))

    def session(self, name: str, **fields: Any) -> Any:
        return self.ok(self.post("/sessions", {"id": name, **fields}))

    def say(self, session: str, *turns: tuple[str, str], **fields: Any) -> Any:
        messages = [{"peer_id": peer, "content": content, **fields} for peer, content in turns]
        return self.ok(self.post(f"/sessions/{session}/messages/", {"messages": messages}))

    def conclude(
        self, observer: str, observed: str, *contents: str, session: str | None = None
    ) -> Any:
        pair = {"observer_id": observer, "observed_id": observed, "session_id": session}
        return self.ok(
            self.post(
                "/observations",
                {"observations": [{"content": content, **pair} for content in contents]},
            )
        )


@pytest.fixture
def v2(app: Flask, runtime: Runtime) -> Iterator[V2Client]:
    """The application and a workspace name that is free."""
    with undone(runtime.storage):
        opened = V2Client(app, runtime, f"w{next(_numbers)}")
        yield opened
        runtime.storage.write(opened.newest.leave_no_work)
