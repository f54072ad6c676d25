"""Keys of the first generation name things by uid; they open the same things under their present
names, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from flask import Flask
from werkzeug.test import Client, TestResponse

from api.conftest import SECRET
from memservice.runtime import Runtime
from support.stores.stores import undone

W = "/v3/workspaces/acme"

pytestmark = pytest.mark.slow


@pytest.fixture
def client(app_with_keys: tuple[Flask, Runtime]) -> Iterator[Client]:
    """What a test writes is undone after it."""
    app, runtime = app_with_keys
    with undone(runtime.storage):
        yield Client(app)


def call(
    client: Client, claims: dict[str, Any], method: str, path: str, body: Any = None
) -> TestResponse:
    token = jwt.encode({"t": "", **claims}, SECRET, algorithm="HS256")
    return client.open(path, method=method, json=body, headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def uids(client: Client) -> dict[str, str]:
    admin = {"ad": True}
    uids_by_name = {}
    for name in ("acme", "other"):
        uids_by_name[name] = call(client, admin, "POST", "/v3/workspaces", {"id": name}).get_json()[
            "uid"
        ]
    for name in ("alice", "bob"):
        uids_by_name[name] = call(client, admin, "POST", f"{W}/peers", {"id": name}).get_json()[
            "uid"
        ]
    for name in ("talk", "chat"):
        uids_by_name[name] = call(
            client, admin, "POST", f"{W}/sessions", {"id": name, "peers": {"bob": {}}}
        ).get_json()["uid"]
    return uids_by_name


def status(client: Client, claims: dict[str, Any], method: str, path: str, body: Any = None) -> int:
    return call(client, claims, method, path, body).status_code


def test_an_app_is_a_workspace(client: Client, uids: dict[str, str]) -> None:
    key = {"ap": uids["acme"]}
    assert status(client, key, "POST", f"{W}/peers/list", {}) == 200
    assert status(client, key, "POST", f"{W}/sessions/talk/messages/list", {}) == 200
    assert status(client, key, "POST", "/v3/workspaces/other/peers/list", {}) == 401
    assert status(client, key, "POST", "/v3/workspaces/list", {}) == 401


def test_a_user_claim_is_a_peer_whatever_other_claims_there_are(
    client: Client, uids: dict[str, str]
) -> None:
    for key in (
        {"us": uids["alice"]},
        {"ap": uids["acme"], "us": uids["alice"]},
        {"ap": uids["other"], "us": uids["alice"]},
    ):
        assert status(client, key, "GET", f"{W}/peers/alice/card") == 200
        assert status(client, key, "GET", f"{W}/peers/bob/card") == 401
        assert status(client, key, "POST", f"{W}/peers/list", {}) == 401
        assert status(client, key, "POST", f"{W}/sessions/talk/messages/list", {}) == 401
    # a member
    assert (
        status(client, {"us": uids["bob"]}, "POST", f"{W}/sessions/talk/messages/list", {}) == 200
    )


def test_a_session_claim_opens_that_session(client: Client, uids: dict[str, str]) -> None:
    for key in (
        {"se": uids["talk"]},
        {"ap": uids["acme"], "us": uids["alice"], "se": uids["talk"]},
    ):
        assert status(client, key, "POST", f"{W}/sessions/talk/messages/list", {}) == 200
        assert status(client, key, "POST", f"{W}/sessions/chat/messages/list", {}) == 401
        assert status(client, key, "GET", f"{W}/peers/alice/card") == 401


@pytest.mark.parametrize(
    "claims",
    [{"ap": "nobody"}, {"us": "nobody"}, {"se": "nobody"}, {"co": "anything"}, {"us": "acme"}],
)
def test_claims_of_unknown_rows_open_nothing(
    client: Client, uids: dict[str, str], claims: dict[str, str]
) -> None:
    assert status(client, claims, "POST", f"{W}/peers/list", {}) == 401
    assert status(client, claims, "GET", f"{W}/peers/alice/card") == 401
    assert status(client, claims, "POST", f"{W}/sessions/talk/messages/list", {}) == 401


@pytest.mark.parametrize(
    ("claims", "opened"),
    [
        ({"w": "acme", "us": "alice"}, {"alice"}),
        ({"w": "acme", "us": "bob"}, {"talk"}),
        ({"w": "acme", "se": "talk"}, {"talk"}),
        ({"w": "acme", "ap": "acme"}, {"peers", "alice", "talk"}),
        ({"w": "acme", "p": "alice", "us": "alice"}, {"alice"}),
        ({"w": "acme", "p": "alice", "ap": "acme"}, {"alice"}),
        ({"w": "acme", "p": "alice", "se": "talk"}, {"talk"}),
        ({"w": "acme", "p": "alice", "us": "bob"}, set()),
        ({"w": "acme", "s": "talk", "se": "chat"}, set()),
        ({"w": "other", "us": "alice"}, set()),
        ({"w": "acme", "ap": "other"}, set()),
        ({"w": "acme", "us": "nobody"}, set()),
        ({"w": "acme", "co": "anything"}, set()),
    ],
)
def test_the_narrowest_of_claims_of_both_kinds_counts(
    client: Client, uids: dict[str, str], claims: dict[str, str], opened: set[str]
) -> None:
    """A name of one generation never widens what a key says in the other."""
    key = {
        claim: uids.get(name, name) if claim in ("ap", "us", "se") else name
        for claim, name in claims.items()
    }
    requests: dict[str, tuple[str, str, Any]] = {
        "peers": ("POST", f"{W}/peers/list", {}),
        "alice": ("GET", f"{W}/peers/alice/card", None),
        "talk": ("POST", f"{W}/sessions/talk/messages/list", {}),
    }
    assert {
        name for name, request in requests.items() if status(client, key, *request) == 200
    } == opened


def test_a_scope_is_not_a_user(client: Client, uids: dict[str, str]) -> None:
    admin = {"ad": True}
    call(client, admin, "POST", f"{W}/scopes", {"id": "team"})
    assert (
        status(client, admin, "POST", f"{W}/scopes/team/sessions", {"session_ids": ["talk"]}) == 204
    )
    (scope,) = call(client, admin, "POST", f"{W}/peers/list", {"kind": "scope"}).get_json()["items"]
    assert (
        status(client, {"us": scope["uid"]}, "POST", f"{W}/sessions/talk/messages/list", {}) == 401
    )


def test_a_slug_is_not_accepted_as_a_uid(client: Client, uids: dict[str, str]) -> None:
    assert status(client, {"ap": "acme"}, "POST", f"{W}/peers/list", {}) == 401
    assert status(client, {"w": uids["acme"]}, "POST", f"{W}/peers/list", {}) == 401


def test_a_deleted_workspace_is_not_opened(client: Client, uids: dict[str, str]) -> None:
    assert status(client, {"ad": True}, "DELETE", "/v3/workspaces/other") == 202
    call(client, {"ad": True}, "POST", "/v3/workspaces", {"id": "other"})
    assert (
        status(client, {"ap": uids["other"]}, "POST", "/v3/workspaces/other/peers/list", {}) == 401
    )
