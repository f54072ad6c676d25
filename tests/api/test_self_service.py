"""A peer's own key exports and erases that peer, if the workspace allows it; by default it does
not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from memservice.worker.polling import Worker
from support.api.auth_client import AuthClient, signed

W = "/v3/workspaces/acme"
ALICE, BOB = (signed({"w": "acme", "p": name}) for name in ("alice", "bob"))
REQUESTS = (
    ("GET", f"{W}/peers/alice/export"),
    ("DELETE", f"{W}/peers/alice?dry_run=true"),
    ("DELETE", f"{W}/peers/alice?mentions=redact"),
)


@pytest.fixture
def auth_client() -> Iterator[AuthClient]:
    client = AuthClient.open()
    client.do("POST", "/v3/workspaces", {"id": "acme"})
    client.do("POST", f"{W}/sessions", {"id": "room", "peers": {"alice": {}, "bob": {}}})
    messages = [
        {"peer_id": "alice", "content": "Hello."},
        {"peer_id": "bob", "content": "Hi alice."},
    ]
    client.do("POST", f"{W}/sessions/room/messages", {"messages": messages})
    yield client
    client.close()


def allow(auth_client: AuthClient, value: Any) -> None:
    auth_client.do("PUT", W, {"configuration": {"self_service": {"enabled": value}}})


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_it_is_off_by_default_and_can_be_switched_off(
    auth_client: AuthClient, method: str, path: str
) -> None:
    assert auth_client.call(method, path, ALICE).status_code == 401
    allow(auth_client, True)
    allow(auth_client, False)
    assert auth_client.call(method, path, ALICE).status_code == 401
    assert auth_client.do("POST", f"{W}/peers/list")["total"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_a_key_of_another_peer_may_not(auth_client: AuthClient, method: str, path: str) -> None:
    allow(auth_client, True)
    of_session = signed({"w": "acme", "s": "room"})
    of_other_workspace = signed({"w": "other", "p": "alice"})
    for token in (BOB, of_session, of_other_workspace):
        assert auth_client.call(method, path, token).status_code == 401


@pytest.mark.slow
def test_a_peer_exports_and_erases_itself_and_its_key_ends_with_it(
    auth_client: AuthClient,
) -> None:
    allow(auth_client, True)
    alice = auth_client.mint("acme", "alice").token
    lines = auth_client.call("GET", f"{W}/peers/alice/export", alice).get_data(as_text=True)
    types = [json.loads(line)["type"] for line in lines.splitlines()]
    assert (types[0], types[-1]) == ("header", "end")
    assert {"peer", "membership", "message"} <= set(types)
    counts = auth_client.call("DELETE", f"{W}/peers/alice?dry_run=true", alice).get_json()
    assert counts["counts"]["messages"] == 1
    answer = auth_client.call("DELETE", f"{W}/peers/alice?mentions=redact", alice)
    assert answer.status_code == 202
    Worker(auth_client.runtime).run_until_idle(30)
    receipt = auth_client.do("GET", answer.headers["Location"])
    assert (receipt["state"], receipt["target_id"]) == ("done", "alice")
    messages = auth_client.do("POST", f"{W}/sessions/room/messages/list")["items"]
    assert [message["content"] for message in messages] == ["Hi [erased]."]
    assert auth_client.call("GET", f"{W}/peers/alice/export", alice).status_code == 401
