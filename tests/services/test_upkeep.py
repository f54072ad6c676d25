"""Stores remember what their counts and their text index were made with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event

from memservice.compose import open_runtime
from memservice.domain import tokens
from memservice.domain.errors import ConfigurationError, Unavailable
from memservice.domain.filters import equals
from memservice.domain.records import Message
from memservice.runtime import Runtime
from memservice.services import conclusions, messages, peers, store_compatibility
from memservice.services.auth.principal import Principal
from memservice.services.conclusions import ConclusionDraft
from memservice.services.messages import Draft
from memservice.services.retrieval import context, search
from memservice.services.retrieval.context import SessionContextOptions
from memservice.services.retrieval.search import SearchOptions
from memservice.settings import load_settings
from memservice_sqlite.storage import SqliteStorage
from support.stores.stores import sqlite_store_at

ME = Principal(admin=True)
READ_ONLY = "PRAGMA query_only = on"


@pytest.fixture
def runtime(local_storage_name: str, tmp_path: Path) -> Iterator[Runtime]:
    uri = "memory://" if local_storage_name == "memory" else sqlite_store_at(tmp_path / "m.db")
    settings = load_settings(environ={"DB_CONNECTION_URI": uri}, cwd=tmp_path)
    opened = open_runtime(settings)
    opened.storage.migrate()
    store_compatibility.initialise(opened)
    yield opened
    opened.close()


def talk(runtime: Runtime) -> list[Message]:
    drafts = [
        Draft(f"Message {number} tells of the heron by the river.", "ann" if number % 2 else "ben")
        for number in range(1, 8)
    ]
    return messages.create(runtime, ME, "w", "s", drafts)


@pytest.mark.slow
def test_a_store_that_can_only_be_read_is_refused_at_the_start(tmp_path: Path) -> None:
    uri = sqlite_store_at(tmp_path / "m.db")
    settings = load_settings(environ={"DB_CONNECTION_URI": uri}, cwd=tmp_path)
    with closing(open_runtime(settings)) as opened:
        store_compatibility.initialise(opened)
    with closing(open_runtime(settings)) as opened:
        storage = opened.storage
        assert isinstance(storage, SqliteStorage)
        event.listen(storage.engine, "connect", lambda connection, _: connection.execute(READ_ONLY))
        with pytest.raises(Unavailable, match="may not be written to"):
            store_compatibility.initialise(opened)


def test_a_store_with_another_counter_or_analyser_is_refused_with_the_command(
    runtime: Runtime,
) -> None:
    store_compatibility.check(runtime)
    runtime.storage.write(lambda tx: tx.facts.set(store_compatibility.COUNTER, "another"))
    with pytest.raises(ConfigurationError, match=r"'another'.*memservice db recount"):
        store_compatibility.initialise(runtime)
    store_compatibility.recount(runtime)
    store_compatibility.check(runtime)
    runtime.storage.write(lambda tx: tx.facts.set(store_compatibility.TEXT, "older-1"))
    with pytest.raises(ConfigurationError, match=r"'older-1'.*memservice db reindex"):
        store_compatibility.check(runtime)
    store_compatibility.reindex(runtime)
    store_compatibility.check(runtime)


def test_a_recount_corrects_every_count(runtime: Runtime) -> None:
    message_rows = talk(runtime)
    wrong = {"tokens": 1, "tokens_through": 1}
    runtime.storage.write(
        lambda tx: [
            tx.rows.change(Message, equals(key=message.key), **wrong) for message in message_rows
        ]
    )
    steps: list[int] = []
    assert store_compatibility.recount(runtime, steps.append) == 7 == sum(steps)
    through = 0
    with runtime.storage.read() as tx:
        session = tx.workspaces.locate("w", session_id="s").session
        assert session is not None
        for message in tx.messages.run(session.key, 1, 7):
            through += tokens.count(message.content)
            assert (message.tokens, message.tokens_through) == (
                tokens.count(message.content),
                through,
            )
        assert session.token_total == through
    budget = tokens.count(message_rows[-1].content) + tokens.count(message_rows[-2].content)
    tail = context.of_session(runtime, ME, "w", "s", SessionContextOptions(tokens=budget)).messages
    assert [message.seq for message in tail] == [6, 7]


def test_a_reindex_finds_everything_again(runtime: Runtime) -> None:
    talk(runtime)
    peers.get_or_create(runtime, ME, "w", "ann", {"name": "Annika"}, None)
    conclusions.create(runtime, ME, "w", [ConclusionDraft("Ann watches herons", "ann", "ann")])
    with runtime.storage.read() as tx:
        workspace = tx.workspaces.by_slug("w")
    assert workspace is not None
    while runtime.storage.write(lambda tx: runtime.storage.text.drop(tx, workspace.key, 3)):
        pass
    assert search.search(runtime, ME, "w", SearchOptions("heron")) == []
    store_compatibility.reindex(runtime)
    assert len(search.search(runtime, ME, "w", SearchOptions("heron"))) == 7
    assert [message.author for message in search.search(runtime, ME, "w", SearchOptions("Annika"))][
        :1
    ] == ["ann"]
    pair = {"observer_id": "ann", "observed_id": "ann"}
    assert [hit.content for hit in conclusions.query(runtime, ME, "w", "herons", filters=pair)] == [
        "Ann watches herons"
    ]
