"""Keys of each generation on each generation: a key gives the same access everywhere, whichever
generation minted it and whichever names it uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from memservice.services.auth import api_keys
from memservice.worker.polling import Worker
from support.api.auth_client import ALL, AuthClient, signed
from support.stores.stores import store_of

pytestmark = pytest.mark.slow

GENERATIONS = ("v1", "v2", "v3")
OPEN, SHUT = 200, 401
LATER = {"v2": "/v2/workspaces/acme", "v3": "/v3/workspaces/acme"}


@dataclass
class Acme:
    """Workspace acme with alice, who owns a session and is in the session room with bob; bob owns a
    session of his own."""

    auth_client: AuthClient
    uids: dict[str, str]

    def make_again(self) -> None:
        """Make acme, and all in it, under the same names."""
        do, uids = self.auth_client.do, self.uids
        uids["acme"] = do("POST", "/v3/workspaces", {"id": "acme"})["uid"]
        for name in ("alice", "bob"):
            uids[name] = do("POST", f"{LATER['v3']}/peers", {"id": name})["uid"]
        uids["room"] = do(
            "POST", f"{LATER['v3']}/sessions", {"id": "room", "peers": {"alice": {}, "bob": {}}}
        )["uid"]
        for session, owner in (("owned", "alice"), ("his", "bob")):
            uids[session] = do("POST", f"/v1/apps/{uids['acme']}/users/{uids[owner]}/sessions", {})[
                "id"
            ]

    def erase(self) -> None:
        """Let the work that waits be done, so that a deleted session's name is free."""
        Worker(self.auth_client.runtime).run_until_idle()

    def mint(self, by: str, of: str) -> str:
        """A key of generation `by`: of the workspace, of alice, of her own session or of the shared
        one."""
        uids = self.uids
        named = {
            "workspace": (f"app_id={uids['acme']}", "workspace_id=acme"),
            "alice": (
                f"app_id={uids['acme']}&user_id={uids['alice']}",
                "workspace_id=acme&peer_id=alice",
            ),
            "owned": (
                f"session_id={uids['owned']}",
                f"workspace_id=acme&session_id={uids['owned']}",
            ),
            "room": (f"session_id={uids['room']}", "workspace_id=acme&session_id=room"),
        }[of]
        query = named[0] if by == "v1" else named[1]
        return str(self.auth_client.do("POST", f"/{by}/keys?{query}")["key"])

    def status(self, token: str, generation: str, what: str) -> int:
        """Of a request that only reads."""
        method, path = self._first()[what] if generation == "v1" else self._later(generation)[what]
        options: dict[str, Any] = {} if method == "GET" else {"json": {}}
        return self.auth_client.call(method, path, token, **options).status_code

    def _first(self) -> dict[str, tuple[str, str]]:
        app = f"/v1/apps/{self.uids['acme']}"
        alice, bob = (f"{app}/users/{self.uids[name]}" for name in ("alice", "bob"))
        return {
            "the workspace": ("POST", f"{app}/users/list"),
            "another workspace": ("POST", f"/v1/apps/{self.uids['other']}/users/list"),
            "every workspace": ("POST", "/v1/apps/list"),
            "alice": ("POST", f"{alice}/sessions/list"),
            "bob": ("POST", f"{bob}/sessions/list"),
            "her session": ("POST", f"{alice}/sessions/{self.uids['owned']}/messages/list"),
            "the shared session": ("POST", f"{alice}/sessions/{self.uids['room']}/messages/list"),
            "his session": ("POST", f"{bob}/sessions/{self.uids['his']}/messages/list"),
        }

    def _later(self, generation: str) -> dict[str, tuple[str, str]]:
        at = LATER[generation]
        return {
            "the workspace": ("POST", f"{at}/peers/list"),
            "another workspace": ("POST", f"/{generation}/workspaces/other/peers/list"),
            "every workspace": ("POST", f"/{generation}/workspaces/list"),
            "alice": ("POST", f"{at}/peers/alice/sessions"),
            "bob": ("POST", f"{at}/peers/bob/sessions"),
            "her session": ("POST", f"{at}/sessions/{self.uids['owned']}/messages/list"),
            "the shared session": ("POST", f"{at}/sessions/room/messages/list"),
            "his session": ("POST", f"{at}/sessions/{self.uids['his']}/messages/list"),
        }


EVERYTHING = (
    "the workspace",
    "another workspace",
    "every workspace",
    "alice",
    "bob",
    "her session",
    "the shared session",
    "his session",
)
OPENS = {
    "workspace": {
        "the workspace",
        "alice",
        "bob",
        "her session",
        "the shared session",
        "his session",
    },
    "alice": {"alice", "her session", "the shared session"},
    "owned": {"her session"},
    "room": {"the shared session"},
}
"""What a key opens, by what it is for."""


@contextmanager
def opened(uri: str) -> Iterator[Acme]:
    auth_client = AuthClient.open(uri)
    other = auth_client.do("POST", "/v3/workspaces", {"id": "other"})["uid"]
    acme = Acme(auth_client, {"other": other})
    acme.make_again()
    yield acme
    auth_client.close()


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Acme]:
    with opened("memory://") as acme:
        yield acme


@pytest.fixture
def acme(storage_name: str, tmp_path: Path, in_memory: Acme) -> Iterator[Acme]:
    if storage_name == "memory":
        with in_memory.auth_client.undone():
            yield replace(in_memory, uids=dict(in_memory.uids))
        return
    with store_of(storage_name, tmp_path) as uri, opened(uri) as acme:
        yield acme


@pytest.mark.parametrize("of", OPENS)
@pytest.mark.parametrize("by", GENERATIONS)
def test_a_key_gives_the_same_access_in_every_generation(acme: Acme, by: str, of: str) -> None:
    token = acme.mint(by, of)
    for generation in GENERATIONS:
        statuses = {what: acme.status(token, generation, what) for what in EVERYTHING}
        assert statuses == {what: OPEN if what in OPENS[of] else SHUT for what in EVERYTHING}, (
            generation
        )


@pytest.mark.parametrize("by", GENERATIONS)
def test_a_key_works_after_renaming(acme: Acme, by: str) -> None:
    token = acme.mint(by, "alice")
    at = f"/v1/apps/{acme.uids['acme']}"
    acme.auth_client.do("PUT", f"{at}/users/{acme.uids['alice']}", {"name": "Alice Cooper"})
    acme.auth_client.do("PUT", at, {"name": "Acme & Sons"})
    assert [acme.status(token, generation, "alice") for generation in GENERATIONS] == [OPEN] * 3
    assert [acme.status(token, generation, "bob") for generation in GENERATIONS] == [SHUT] * 3


@pytest.mark.parametrize("by", GENERATIONS)
def test_a_key_opens_an_archived_session_where_there_is_one(acme: Acme, by: str) -> None:
    token, body = acme.mint(by, "owned"), {"content": "still here", "is_user": True}
    path = f"/v1/apps/{acme.uids['acme']}/users/{acme.uids['alice']}/sessions/{acme.uids['owned']}"
    assert acme.auth_client.call("DELETE", path, token).status_code == 200
    assert acme.auth_client.call("POST", f"{path}/messages", token, json=body).status_code == 200
    for root in LATER.values():
        response = acme.auth_client.call(
            "POST", f"{root}/sessions/{acme.uids['owned']}/messages/list", token, json={}
        )
        assert (response.status_code, response.get_json()["total"]) == (200, 0)
        assert (
            acme.auth_client.call(
                "DELETE", f"{root}/sessions/{acme.uids['owned']}", token
            ).status_code
            == 404
        )


@pytest.mark.parametrize("by", GENERATIONS)
def test_a_member_key_reads_until_the_member_leaves(acme: Acme, by: str) -> None:
    token = acme.mint(by, "alice")
    assert [acme.status(token, generation, "the shared session") for generation in GENERATIONS] == [
        OPEN
    ] * 3
    acme.auth_client.do("DELETE", f"{LATER['v2']}/sessions/room/peers", ["alice"])
    assert [
        acme.status(token, generation, "the shared session") for generation in ("v2", "v3")
    ] == [SHUT] * 2
    at = f"/v1/apps/{acme.uids['acme']}/users/{acme.uids['alice']}/sessions"
    assert (
        acme.auth_client.call("GET", f"{at}?session_id={acme.uids['room']}", token).status_code
        == 404
    )
    assert (
        acme.auth_client.call(
            "POST", f"{at}/{acme.uids['room']}/messages/list", token, json={}
        ).get_json()["total"]
        == 0
    )


@pytest.mark.parametrize("by", GENERATIONS)
def test_a_revoked_key_is_revoked_everywhere(acme: Acme, by: str) -> None:
    token = acme.mint(by, "workspace")
    (key,) = acme.auth_client.do("GET", "/v3/keys")["items"]
    acme.auth_client.do("DELETE", f"/v3/keys/{key['id']}")
    assert [acme.status(token, generation, "the workspace") for generation in GENERATIONS] == [
        SHUT
    ] * 3


@pytest.mark.parametrize("by", GENERATIONS)
def test_a_key_of_a_deleted_workspace_does_not_open_its_successor(acme: Acme, by: str) -> None:
    """Nor do keys of its peers and sessions open those of the same name there, and a new key opens
    what the old one opened."""
    tokens = {of: acme.mint(by, of) for of in OPENS}
    acme.auth_client.do("DELETE", LATER["v2"])
    acme.make_again()
    for of, token in tokens.items():
        for generation in GENERATIONS:
            statuses = {what: acme.status(token, generation, what) for what in EVERYTHING}
            assert statuses == dict.fromkeys(EVERYTHING, SHUT), (of, generation)
    assert [
        acme.status(acme.mint(by, "workspace"), generation, "the workspace")
        for generation in GENERATIONS
    ] == [OPEN] * 3


@pytest.mark.parametrize("by", GENERATIONS)
def test_a_key_of_a_deleted_session_does_not_open_its_successor(acme: Acme, by: str) -> None:
    of_the_session, of_the_workspace, of_alice = (
        acme.mint(by, of) for of in ("room", "workspace", "alice")
    )
    acme.auth_client.do("DELETE", f"{LATER['v3']}/sessions/room")
    assert [
        acme.status(of_the_session, generation, "the shared session") for generation in GENERATIONS
    ] == [SHUT] * 3
    acme.erase()
    assert [
        acme.status(of_the_session, generation, "the shared session") for generation in GENERATIONS
    ] == [SHUT] * 3
    again = acme.auth_client.do(
        "POST", f"{LATER['v3']}/sessions", {"id": "room", "peers": {"alice": {}, "bob": {}}}
    )
    assert again["uid"] != acme.uids["room"]
    acme.uids["room"] = again["uid"]
    assert [
        acme.status(of_the_session, generation, "the shared session") for generation in GENERATIONS
    ] == [SHUT] * 3
    assert [
        acme.status(of_the_workspace, generation, "the shared session")
        for generation in GENERATIONS
    ] == [OPEN] * 3
    assert [
        acme.status(of_alice, generation, "the shared session") for generation in GENERATIONS
    ] == [OPEN] * 3
    assert [
        acme.status(acme.mint(by, "room"), generation, "the shared session")
        for generation in GENERATIONS
    ] == [OPEN] * 3


@pytest.mark.parametrize("by", ["v2", "v3"])
def test_a_key_created_before_its_workspace_belongs_to_the_first_of_that_name(
    acme: Acme, by: str
) -> None:
    """Clients create what they name when they first use it."""
    key = acme.auth_client.do("POST", f"/{by}/keys?workspace_id=later&session_id=s")["key"]
    messages = f"/{by}/workspaces/later/sessions/s/messages"
    body = {"messages": [{"peer_id": "alice", "content": "first"}]}
    assert acme.auth_client.call("POST", messages, key, json=body).status_code == (
        200 if by == "v2" else 201
    )
    assert acme.auth_client.call("POST", f"{messages}/list", key, json={}).status_code == 200
    acme.auth_client.do("DELETE", "/v2/workspaces/later")
    assert acme.auth_client.call("POST", messages, key, json=body).status_code == SHUT
    acme.auth_client.do("POST", messages, body)
    assert acme.auth_client.call("POST", f"{messages}/list", key, json={}).status_code == SHUT


@pytest.mark.parametrize("by", ["v2", "v3"])
def test_a_key_created_during_the_erasure_of_its_session_belongs_to_the_next_one(
    acme: Acme, by: str
) -> None:
    acme.auth_client.do("DELETE", f"{LATER['v3']}/sessions/room")
    token = acme.mint(by, "room")
    acme.erase()
    acme.auth_client.do("POST", f"{LATER['v3']}/sessions", {"id": "room"})
    assert [
        acme.status(token, generation, "the shared session") for generation in ("v2", "v3")
    ] == [OPEN] * 2
    acme.auth_client.do("DELETE", f"{LATER['v3']}/sessions/room")
    assert [
        acme.status(token, generation, "the shared session") for generation in ("v2", "v3")
    ] == [SHUT] * 2


def test_a_token_without_an_id_is_checked_by_its_names(acme: Acme) -> None:
    """As the contract has it: another server signed it with the same secret, and the store has
    never seen it."""
    token = signed({"t": "", "w": "acme"})
    acme.auth_client.do("DELETE", LATER["v2"])
    assert acme.status(token, "v3", "the workspace") == OPEN
    acme.make_again()
    assert [acme.status(token, generation, "the workspace") for generation in GENERATIONS] == [
        OPEN
    ] * 3
    api_keys.revoke_token(acme.auth_client.runtime, ALL, token)
    assert [acme.status(token, generation, "the workspace") for generation in GENERATIONS] == [
        SHUT
    ] * 3


@pytest.mark.parametrize("by", GENERATIONS)
def test_a_peers_key_changes_its_own_session_in_the_first_generation_and_no_shared_one_in_any(
    acme: Acme, by: str
) -> None:
    """The key of one member may not spoil for the others what is theirs as well."""
    app = f"/v1/apps/{acme.uids['acme']}/users/{acme.uids['alice']}/sessions"
    token, session, owned = acme.mint(by, "alice"), acme.uids["room"], acme.uids["owned"]
    messages = acme.auth_client.do(
        "POST",
        f"{LATER['v3']}/sessions/room/messages",
        {"messages": [{"peer_id": "bob", "content": "mine"}]},
    )[0]["id"]
    before = acme.auth_client.do("POST", f"{LATER['v3']}/sessions/room/messages/list", {})
    requests: list[tuple[str, str, Any]] = [
        ("POST", f"{app}/{session}/messages", {"content": "x", "is_user": True}),
        (
            "POST",
            f"{app}/{session}/messages/batch",
            {"messages": [{"content": "x", "is_user": False}]},
        ),
        ("PUT", f"{app}/{session}/messages/{messages}", {"metadata": {"spoilt": True}}),
        ("PUT", f"{app}/{session}", {"metadata": {"spoilt": True}}),
        ("GET", f"{app}/{session}/clone", ...),
        ("DELETE", f"{app}/{session}", ...),
    ]
    for generation, at in LATER.items():
        requests += [
            (
                "POST",
                f"{at}/sessions/room/messages",
                {"messages": [{"peer_id": "alice", "content": "x"}]},
            ),
            ("PUT", f"{at}/sessions/room/messages/{messages}", {"metadata": {"spoilt": True}}),
            ("PUT", f"{at}/sessions/room", {"metadata": {"spoilt": True}}),
            ("GET" if generation == "v2" else "POST", f"{at}/sessions/room/clone", ...),
            ("DELETE", f"{at}/sessions/room", ...),
        ]
    for method, path, body in requests:
        options = {} if body is ... else {"json": body}
        assert acme.auth_client.call(method, path, token, **options).status_code == SHUT, (
            f"{method} {path}"
        )
    assert acme.auth_client.do("POST", f"{LATER['v3']}/sessions/room/messages/list", {}) == before
    assert (
        acme.auth_client.call(
            "POST", f"{app}/{owned}/messages", token, json={"content": "x", "is_user": True}
        ).status_code
        == OPEN
    )
    assert (
        acme.auth_client.call(
            "PUT", f"{app}/{owned}", token, json={"metadata": {"a": 1}}
        ).status_code
        == OPEN
    )
    assert acme.auth_client.call("GET", f"{app}/{owned}/clone", token).status_code == OPEN
    shared = acme.mint(by, "room")
    assert (
        acme.auth_client.call(
            "POST", f"{app}/{session}/messages", shared, json={"content": "x", "is_user": True}
        ).status_code
        == OPEN
    )
    assert acme.auth_client.call("DELETE", f"{app}/{owned}", token).status_code == OPEN
