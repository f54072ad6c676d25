"""`import-from` after an erasure: conclusions name their messages, so they go with them, and do not
come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from memservice.app import create_app
from memservice.cli.remote_workspace import Remote, lines
from memservice.compose import open_runtime
from memservice.domain.filters import equals
from memservice.domain.records import Conclusion, Message
from memservice.plugins import load_plugins
from memservice.runtime import Runtime
from memservice.services import messages as message_service
from memservice.services.erasure import messages
from memservice.services.messages import Draft
from memservice.services.transfer import importing
from memservice.services.transfer.importing import Report
from memservice.settings import Settings, load_settings
from memservice.worker.polling import Worker
from support.pipeline.pipeline import PRINCIPAL

NOW = datetime(2024, 3, 1, tzinfo=UTC)
QUOKKA = "I own a quokka."


def settings_in(folder: Path) -> Settings:
    folder.mkdir()
    environ = {"DB_CONNECTION_URI": f"sqlite:///{folder}/memservice.db"}
    return load_settings(environ=environ, cwd=folder)


class Transport(httpx.WSGITransport):
    """To the application. `knows`: whether it accepts `include_messages`."""

    knows = True

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if not self.knows and "include_messages" in request.url.params:
            return httpx.Response(422, json={"detail": "unknown parameter"})
        return super().handle_request(request)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Transport]:
    """Another server, on which Alice said two things."""
    settings = settings_in(tmp_path / "other")
    runtime = open_runtime(settings, "command", plugins=load_plugins(settings))
    runtime.storage.migrate()
    drafts = [Draft(text, "alice") for text in ("I like green tea.", QUOKKA)]
    message_service.create(runtime, PRINCIPAL, "acme", "s", drafts)
    Worker(runtime).run_until_idle()
    runtime.close()
    app = create_app(settings)
    yield Transport(app=app)
    app.extensions["memservice"].close()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Runtime]:
    settings = settings_in(tmp_path / "here")
    runtime = open_runtime(settings, "command", plugins=load_plugins(settings))
    runtime.storage.migrate()
    yield runtime
    runtime.close()


def import_from(other: Transport, here: Runtime) -> Report:
    remote = Remote(httpx.Client(base_url="http://localhost", transport=other), pause=0.0)
    return importing.load(here, lines(remote, "acme", NOW))


def contents(here: Runtime) -> list[str]:
    with here.storage.read() as tx:
        rows = tx.rows.page(Conclusion)
    return [row.content for row in rows if "quokka" in row.content]


def delete(here: Runtime) -> None:
    with here.storage.read() as tx:
        (message,) = tx.rows.page(Message, equals(content=QUOKKA))
    messages.delete(here, PRINCIPAL, "acme", "s", message.uid)
    Worker(here).run_until_idle()


def test_conclusions_of_erased_messages_do_not_come_back(other: Transport, here: Runtime) -> None:
    import_from(other, here)
    assert contents(here)
    delete(here)
    assert contents(here) == []
    report = import_from(other, here)
    assert contents(here) == []
    assert report.left_out["conclusions"] == report.left_out["messages"] == 1


def test_a_server_that_does_not_name_messages_is_imported_nevertheless(
    other: Transport, here: Runtime
) -> None:
    other.knows = False
    assert import_from(other, here).stored["conclusions"] >= 2
    with here.storage.read() as tx:
        assert [row.message_keys for row in tx.rows.page(Conclusion) if row.message_keys] == []


def test_messages_that_were_not_listed_are_not_named(other: Transport, here: Runtime) -> None:
    """A message that is deleted there while the workspace is read."""
    remote = Remote(httpx.Client(base_url="http://localhost", transport=other), pause=0.0)
    read = [json.loads(line) for line in lines(remote, "acme", NOW)]
    (uid,) = [line["uid"] for line in read if line.get("content") == QUOKKA and "seq" in line]
    items = remote.items

    def without(method: str, path: str, **query: object) -> Iterator[object]:
        return (item for item in items(method, path, **query) if item.get("id") != uid)

    remote.items = without  # type: ignore[method-assign]
    read = [json.loads(line) for line in lines(remote, "acme", NOW)]
    sources = [line["message_uids"] for line in read if line.get("type") == "conclusions"]
    assert sources
    assert uid not in [source for each in sources for source in each]
