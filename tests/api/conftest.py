"""The application on each storage, and a short way to call it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from memservice.app import create_app
from memservice.compose import open_runtime
from memservice.domain.filters import equals
from memservice.domain.records import Task
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services.tasks import kinds
from memservice.settings import load_settings
from memservice.spi.storage import Transaction
from memservice.worker.runner import run
from support.stores.stores import store_of, undone
from support.stores.vector_stores import vector_store

_numbers = count(1)
SECRET = "s" * 40


class Api:
    """The routes of one workspace of one test. Paths are relative to it; a path that begins with
    `//` is absolute."""

    def __init__(self, app: Flask, runtime: Runtime, workspace: str) -> None:
        self.app = app
        self.client: FlaskClient = app.test_client()
        self.runtime = runtime
        self.workspace = workspace

    def call(self, method: str, path: str = "", body: Any = ..., **options: Any) -> TestResponse:
        url = path[1:] if path.startswith("//") else f"/v3/workspaces/{self.workspace}{path}"
        if body is not ...:
            options["json"] = body
        return self.client.open(url, method=method, **options)

    def get(self, path: str = "", **options: Any) -> TestResponse:
        return self.call("GET", path, **options)

    def post(self, path: str = "", body: Any = ..., **options: Any) -> TestResponse:
        return self.call("POST", path, body, **options)

    def put(self, path: str = "", body: Any = ..., **options: Any) -> TestResponse:
        return self.call("PUT", path, body, **options)

    def delete(self, path: str = "", body: Any = ..., **options: Any) -> TestResponse:
        return self.call("DELETE", path, body, **options)

    def ok(self, answer: TestResponse, status: int = 200) -> Any:
        """The answer's JSON, after looking at its status."""
        assert answer.status_code == status, f"{answer.status_code}: {answer.text[:500]}"
        return answer.get_json() if answer.data else None

    def ids(self, path: str, body: Any = ..., **query: Any) -> list[str]:
        """The ids on one page of a listing."""
        return [item["id"] for item in self.ok(self.post(path, body, query_string=query))["items"]]

    def create(self) -> Any:
        return self.ok(self.post("//v3/workspaces", {"id": self.workspace}), 201)

    def peer(self, name: str, **fields: Any) -> Any:
        return self.ok(self.post("/peers", {"id": name, **fields}), 201)

    def session(self, name: str, **fields: Any) -> Any:
        return self.ok(self.post("/sessions", {"id": name, **fields}), 201)

    def say(self, session: str, *lines: tuple[str, str], **fields: Any) -> Any:
        """Store (peer, content) pairs."""
        messages = [{"peer_id": peer, "content": content, **fields} for peer, content in lines]
        return self.ok(self.post(f"/sessions/{session}/messages", {"messages": messages}), 201)

    def conclude(
        self, observer: str, observed: str, *contents: str, session: str | None = None
    ) -> Any:
        """Store conclusions; the peers must exist."""
        pair = {"observer_id": observer, "observed_id": observed, "session_id": session}
        return self.ok(
            self.post(
                "/conclusions",
                {"conclusions": [{"content": content, **pair} for content in contents]},
            ),
            201,
        )

    def refused(self, answer: TestResponse, *locs: list[str | int]) -> list[Any]:
        """The problems of a 422, after looking at its shape and that each of `locs` is among
        them."""
        problems: list[Any] = self.ok(answer, 422)["detail"]
        assert isinstance(problems, list)
        assert problems
        for problem in problems:
            assert {"loc", "msg", "type"} <= problem.keys()
            assert all(isinstance(step, str | int) for step in problem["loc"])
            assert isinstance(problem["msg"], str)
            assert problem["msg"]
            assert isinstance(problem["type"], str)
            assert problem["type"]
        locations = [problem["loc"] for problem in problems]
        for loc in locs:
            assert loc in locations, f"{loc} is not among {locations}"
        return problems

    def leave_no_work(self, tx: Transaction) -> None:
        """Forget what is left to do in this workspace: a later test that lets all work be done
        would do it."""
        workspace = tx.workspaces.by_slug(self.workspace)
        if workspace is not None:
            tx.rows.delete(Task, equals(workspace_key=workspace.key))

    def missing(self, answer: TestResponse, *named: str) -> None:
        """Look that the answer is a 404 whose text names what is missing."""
        detail = self.ok(answer, 404)["detail"]
        assert isinstance(detail, str)
        for name in named:
            assert name in detail


@pytest.fixture(scope="session")
def runtime(storage_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    folder: Path = tmp_path_factory.mktemp("store")
    storage, _, index = storage_name.partition("+")
    with store_of(storage, folder) as uri, vector_store(index) as options:
        settings = load_settings(
            environ={}, cwd=folder, overrides={"DB_CONNECTION_URI": uri, **options}
        )
        opened = open_runtime(settings, "api", plugins=load_plugins(settings))
        opened.storage.migrate()
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def app(runtime: Runtime) -> Flask:
    application = create_app(runtime=runtime)
    if not runtime.vectors_transactional:

        @application.after_request
        def settle(response: Response) -> Response:
            """What a worker would do within a moment: vectors outside the storage are written by
            tasks."""
            with runtime.storage.read() as tx:
                ready = tx.tasks.ready(runtime.clock(), 100)
            for unit in ready:
                if unit.startswith(f"{kinds.EMBED}:"):
                    run(runtime, unit)
            return response

    return application


@pytest.fixture
def api(app: Flask, runtime: Runtime) -> Iterator[Api]:
    """The application and a workspace name that is free. The workspace does not exist yet."""
    # Modules that import this one count for themselves, and use the same store.
    with undone(runtime.storage):
        client = Api(app, runtime, f"a{next(_numbers)}")
        yield client
        runtime.storage.write(client.leave_no_work)


@pytest.fixture(scope="session")
def app_with_keys() -> Iterator[tuple[Flask, Runtime]]:
    """An application in memory that requires keys signed with `SECRET`."""
    environ = {
        "DB_CONNECTION_URI": "memory://",
        "AUTH_USE_AUTH": "true",
        "AUTH_JWT_SECRET": SECRET,
    }
    runtime = open_runtime(load_settings(environ=environ), "api")
    yield create_app(runtime.settings, runtime), runtime
    runtime.close()
