"""Connections to an endpoint: who opens them, and for how long anybody waits for that."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from memservice.spi.llm import ModelFailure
from memservice.testing.model_server import Handler, Request, Server
from memservice_http.connections import Connection
from support.models.fixtures import OpenEmbedder
from support.models.vectors import openai_vectors
from support.processes.processes import eventually

SECONDS = 0.3
PATIENCE = 20.0


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Connection]]:
    """Connections each time one is opened, with the name of the thread that does."""
    openings: list[tuple[str, Connection]] = []
    open_and_send = Connection._open_and_send

    def noting(connection: Connection, *arguments: Any) -> None:
        openings.append((threading.current_thread().name, connection))
        open_and_send(connection, *arguments)

    monkeypatch.setattr(Connection, "_open_and_send", noting)
    return openings


@pytest.fixture
def answered() -> Iterator[threading.Event]:
    """To be set when the name server answers."""
    event = threading.Event()
    yield event
    event.set()


def closing(handler: Handler, request: Request) -> None:
    """Answer, and end the connection without having announced it."""
    openai_vectors(handler, request)
    handler.close_connection = True


def test_a_connection_is_opened_once_by_a_thread_of_its_own(
    server: Server, open_embedder: OpenEmbedder, opened: list[tuple[str, Connection]]
) -> None:
    server.then(openai_vectors)
    embedder = open_embedder("openai", "/v1", model="m")
    for text in ("a", "b", "c"):
        assert embedder.embed([text], "query")
    assert [name for name, _ in opened] == ["connecting"]


def test_a_connection_that_the_server_ended_is_opened_again(
    server: Server, open_embedder: OpenEmbedder, opened: list[tuple[str, Connection]]
) -> None:
    server.then(closing)
    embedder = open_embedder("openai", "/v1", model="m")
    for text in ("a", "b", "c"):
        assert embedder.embed([text], "query")
        # The end of the connection arrives a moment after the answer.
        eventually(lambda: not opened[-1][1]._is_open())
    assert [name for name, _ in opened] == ["connecting"] * 3


def test_nobody_waits_for_a_name_server_longer_than_for_an_answer(
    server: Server,
    open_embedder: OpenEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    answered: threading.Event,
) -> None:
    server.then(openai_vectors)
    look_up = socket.getaddrinfo

    def silent(*arguments: Any, **named: Any) -> Any:
        answered.wait(PATIENCE)
        return look_up(*arguments, **named)

    embedder = open_embedder("openai", "/v1", model="m", query_seconds=SECONDS)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", silent)
        began = time.monotonic()
        with pytest.raises(ModelFailure, match=r"took longer than 0\.3 s"):
            embedder.embed(["a"], "query")
        assert time.monotonic() - began < PATIENCE / 2
    assert embedder.embed(["b"], "query"), "by another connection"
    answered.set()
    eventually(lambda: not any(each.name == "connecting" for each in threading.enumerate()))
    assert embedder.embed(["c"], "query")
    assert not any(b'"a"' in request.raw for request in server.requests), (
        "what came too late is not sent any more"
    )
