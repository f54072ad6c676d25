"""`Idempotency-Key` at every route that creates messages, in each generation: a request that is
repeated stores nothing again."""

from __future__ import annotations

import re

import pytest

from api.conftest import Api
from support.api.documents import ours
from support.api.v1_client import V1Client

ONE = {"is_user": True, "content": "once"}
V2 = {"peer_id": "p", "content": "once"}


@pytest.fixture
def session(api: Api) -> str:
    first = V1Client(api)
    return f"//v1{first.session(first.user(first.app()))}"


def stored(api: Api, path: str) -> int:
    total: int = api.ok(api.post(f"{path}/list"))["total"]
    return total


@pytest.mark.parametrize(
    ("route", "body", "messages"),
    [("", ONE, 1), ("/batch", {"messages": [ONE, {"is_user": False, "content": "x"}]}, 2)],
)
def test_a_repeated_key_stores_nothing_in_the_first_generation(
    api: Api, session: str, route: str, body: dict[str, object], messages: int
) -> None:
    path = f"{session}/messages"
    first, again, other = (
        api.ok(api.post(path + route, body, headers={"Idempotency-Key": key}))
        for key in ("k", "k", "l")
    )
    assert first == again != other
    assert stored(api, path) == 2 * messages
    changed = {**ONE, "content": "another"} if not route else {"messages": [ONE]}
    api.refused(
        api.post(path + route, changed, headers={"Idempotency-Key": "k"}),
        ["header", "Idempotency-Key"],
    )
    api.refused(
        api.post(path + route, body, headers={"Idempotency-Key": "x" * 256}),
        ["header", "Idempotency-Key"],
    )


def test_the_same_content_of_another_author_is_a_different_request(api: Api, session: str) -> None:
    path = f"{session}/messages"
    api.ok(api.post(path, ONE, headers={"Idempotency-Key": "k"}))
    api.refused(
        api.post(path, {**ONE, "is_user": False}, headers={"Idempotency-Key": "k"}),
        ["header", "Idempotency-Key"],
    )


@pytest.mark.parametrize(
    "path",
    [
        "//v2/workspaces/w/sessions/s/messages",
        "//v2/workspaces/w/peers/p/messages",
        "//v3/workspaces/w/sessions/s/messages",
    ],
)
def test_a_repeated_key_stores_nothing_in_later_generations(api: Api, path: str) -> None:
    status = 201 if path.startswith("//v3") else 200
    first, again, other = (
        api.ok(api.post(path, {"messages": [V2]}, headers={"Idempotency-Key": key}), status)
        for key in ("k", "k", "l")
    )
    assert first == again != other
    assert stored(api, path) == 2


@pytest.mark.parametrize("generation", ["v1", "v2", "v3"])
@pytest.mark.slow
def test_every_route_that_creates_messages_documents_the_key(generation: str) -> None:
    """By the documents: a new route is not forgotten."""
    created = re.compile(r"POST .*/messages(/|/batch|/upload)?")
    routes = {
        name: operation for name, operation in ours(generation).items() if created.fullmatch(name)
    }
    assert len(routes) >= 2
    assert [
        name
        for name, one in routes.items()
        if "Idempotency-Key" not in str(list(one["parameters"]))
    ] == []
