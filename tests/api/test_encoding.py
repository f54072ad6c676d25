"""Encoders give what `Schema.dump` gives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from memservice.api.encoding import encoder
from memservice.api.schema import BaseSchema, page_of
from memservice.api.service_schemas import Health
from memservice.api.v3.schemas import (
    conclusions,
    configuration,
    messages,
    peers,
    sessions,
    workspaces,
)
from memservice.domain.json_bytes import encode
from memservice.domain.records import Conclusion, Message, Peer, Session, Summary, Workspace
from memservice.services.paging import Page
from memservice.services.tasks.queue_status import QueueStatus

PATH = {"workspace_id": "w", "session_id": "s"}
_TIMES = st.datetimes(
    timezones=st.just(UTC),
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - bounds are naive
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001 - bounds are naive
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
_OBJECTS = st.dictionaries(
    st.text(max_size=5)
    | st.sampled_from(
        ["reasoning", "peer_card", "summary", "dream", "dialectic", "custom_instructions"]
    ),
    _JSON,
    max_size=4,
)

_workspaces = st.builds(
    Workspace,
    uid=st.text(max_size=3),
    slug=st.text(max_size=3),
    v1_name=st.just("x"),
    metadata=_OBJECTS,
    configuration=_OBJECTS,
    created_at=_TIMES,
)
_peers = st.builds(
    Peer,
    uid=st.text(max_size=3),
    workspace_key=st.just(1),
    slug=st.text(max_size=3),
    v1_name=st.just("x"),
    metadata=_OBJECTS,
    created_at=_TIMES,
)
_sessions = st.builds(
    Session,
    uid=st.text(max_size=3),
    workspace_key=st.just(1),
    slug=st.text(max_size=3),
    state=st.sampled_from(["active", "archived", "deleting"]),
    metadata=_OBJECTS,
    configuration=_OBJECTS,
    created_at=_TIMES,
)
_messages = st.builds(
    Message,
    uid=st.text(max_size=3),
    workspace_key=st.just(1),
    session_key=st.just(1),
    author_key=st.just(1),
    session=st.text(max_size=3),
    author=st.text(max_size=3),
    seq=st.just(1),
    content=st.text(max_size=9),
    metadata=_OBJECTS,
    tokens=st.integers(0, 99),
    tokens_through=st.just(1),
    created_at=_TIMES,
)
_summaries = st.builds(
    Summary,
    workspace_key=st.just(1),
    session_key=st.just(1),
    kind=st.sampled_from(["short", "long"]),
    content=st.text(max_size=5),
    message_key=st.just(1),
    message_uid=st.text(max_size=3),
    tokens=st.integers(0, 99),
    reasoner=st.just("x"),
    created_at=_TIMES,
)
_conclusions = st.builds(
    Conclusion,
    uid=st.text(max_size=3),
    workspace_key=st.just(1),
    collection_key=st.just(1),
    observer_key=st.just(1),
    observed_key=st.just(1),
    observer=st.text(max_size=3),
    observed=st.text(max_size=3),
    session=st.none() | st.text(max_size=3),
    content=st.text(max_size=9),
    fingerprint=st.just("x"),
    source_ids=st.none() | st.lists(st.text(max_size=3), max_size=3),
    times_derived=st.integers(1, 9),
    said_at=_TIMES,
    created_at=_TIMES,
)
_status = st.builds(
    QueueStatus,
    session_id=st.none() | st.text(max_size=3),
    total=st.integers(0, 9),
    sessions=st.none(),
)


def _pages(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Page[Any]]:
    return st.builds(
        Page,
        items=st.lists(items, max_size=3),
        total=st.integers(0, 99),
        page=st.integers(1, 9),
        size=st.integers(1, 100),
    )


ROWS: dict[type[BaseSchema], st.SearchStrategy[Any]] = {
    workspaces.Workspace: _workspaces,
    peers.Peer: _peers,
    sessions.Session: _sessions,
    messages.Message: _messages,
    sessions.Summary: _summaries,
    conclusions.Conclusion: _conclusions,
    page_of(messages.Message): _pages(_messages),
    page_of(conclusions.Conclusion): _pages(_conclusions),
    page_of(sessions.Session): _pages(_sessions),
    workspaces.QueueStatus: st.builds(
        QueueStatus,
        total=st.integers(0, 9),
        sessions=st.none() | st.dictionaries(st.text(max_size=3), _status, max_size=3),
    ),
    sessions.SessionContext: st.builds(
        SimpleNamespace,
        messages=st.lists(_messages, max_size=2),
        summary=st.none() | _summaries,
        representation=st.none() | st.text(max_size=5),
        card=st.none() | st.lists(st.text(max_size=3), max_size=2),
    ),
    sessions.SessionSummaries: st.builds(
        SimpleNamespace, short=st.none() | _summaries, long=st.none() | _summaries
    ),
    peers.PeerCardResponse: st.builds(
        SimpleNamespace, peer_card=st.none() | st.lists(st.text(max_size=3), max_size=2)
    ),
    peers.PeerContext: st.builds(
        SimpleNamespace,
        peer=st.text(),
        target=st.text(),
        representation=st.text(),
        card=st.none() | st.lists(st.text(), max_size=2),
    ),
    configuration.SessionPeerConfig: st.builds(
        SimpleNamespace,
        observe_me=st.none() | st.booleans(),
        observe_others=st.none() | st.booleans(),
    ),
    Health: st.just(SimpleNamespace(status="ok")),
}

_APP = Flask(__name__)


@pytest.mark.slow
@pytest.mark.parametrize("schema", ROWS, ids=lambda schema: schema.__name__)
@given(data=st.data())
def test_the_encoder_equals_marshmallow_dump(schema: type[BaseSchema], data: st.DataObject) -> None:
    row = data.draw(ROWS[schema])
    with _APP.test_request_context() as context:
        context.request.view_args = dict(PATH)
        dumped = schema().dump(row)
    encoded = encoder(schema)(row, PATH)
    assert encoded == dumped
    assert list(encoded) == list(dumped)
    with_times = encoder(schema, keep_times=True)(row, PATH)
    assert encode(with_times) == encode(dumped)


def test_null_fields_are_included() -> None:
    @dataclass
    class Row:
        observe_me: bool | None = None
        observe_others: bool | None = None

    assert encoder(configuration.SessionPeerConfig)(Row(), {}) == {
        "observe_me": None,
        "observe_others": None,
    }


def test_stored_sections_are_shown_with_known_keys_only() -> None:
    stored = {
        "summary": {"enabled": None, "odd": 1},
        "dream": {"enabled": True, "dream_type": "x"},
        "mine": {"a": None},
        "reasoning": "x",
    }
    row = Workspace(
        uid="u",
        slug="w",
        v1_name="w",
        configuration=stored,
        created_at=datetime(2024, 1, 1, tzinfo=UTC),
    )
    assert encoder(workspaces.Workspace)(row, {})["configuration"] == {
        "summary": {},
        "dream": {"enabled": True},
        "mine": {"a": None},
    }


def test_hidden_columns_stay_hidden() -> None:
    row = Message(
        uid="u",
        workspace_key=1,
        session_key=1,
        author_key=1,
        session="s",
        author="a",
        seq=1,
        content="c",
        internal={"file_id": "f"},
        tokens=1,
        tokens_through=1,
        created_at=datetime(2024, 1, 1, tzinfo=UTC),
    )
    assert set(encoder(messages.Message)(row, PATH)) == {
        "id",
        "content",
        "peer_id",
        "session_id",
        "metadata",
        "created_at",
        "workspace_id",
        "token_count",
    }
