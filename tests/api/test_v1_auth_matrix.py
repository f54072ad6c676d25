"""Every route of the first generation with every kind of key, of either family. What is expected is
written out here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import jwt
import pytest
from werkzeug.test import TestResponse

from api.test_auth_matrix import ANYBODY, EVERYWHERE, HEADERS, _contents
from memservice.app import create_app
from memservice.services.auth import api_keys
from memservice.settings import load_settings
from support.api.auth_client import ALL, AuthClient, PopulatedIds, populate, signed

KEYS: dict[str, dict[str, Any]] = {
    "admin": {"ad": True},
    "app": {"ap": "{acme}"},
    "workspace": {"w": "acme"},
    "other app": {"ap": "{other}"},
    "user": {"us": "{alice}"},
    "user, other app": {"ap": "{other}", "us": "{alice}"},
    "peer": {"w": "acme", "p": "alice"},
    "other user": {"us": "{bob}"},
    "peer elsewhere": {"w": "other", "p": "alice"},
    "session": {"se": "{session}"},
    "session, its user": {"ap": "{acme}", "us": "{alice}", "se": "{session}"},
    "session of v3": {"w": "acme", "s": "{session}"},
    "other session": {"se": "{room}"},
    "collection": {"co": "{collection}"},
    "collection, its user": {"ap": "{acme}", "us": "{alice}", "co": "{collection}"},
    "other collection": {"co": "{others}"},
    "unknown app": {"ap": "nothing"},
    "unknown user": {"us": "nobody"},
    "unknown session": {"se": "nothing"},
    "unknown collection": {"co": "nothing"},
    "slugs as uids": {"ap": "acme"},
    "uids as slugs": {"w": "{acme}"},
}
"""Keys that are valid as such, by what they are to app acme, user alice, her session and her
collection. The narrowest name counts."""

A = {"admin"}
APP = A | {"app", "workspace"}
USER = APP | {"user", "user, other app", "peer"}
SESSION = USER | {"session", "session, its user", "session of v3"}
COLLECTIONS = USER - {"peer"}
"""The later generations show a peer's key no list of what is known, and let it store none; so
neither does this one."""
COLLECTION = COLLECTIONS | {"collection", "collection, its user"}


@dataclass(frozen=True)
class Row:
    """A route, a request to it that an admin may make, and with which other keys it may be made."""

    path: str
    allowed: set[str]
    body: Any = None
    query: str = ""


_APP, _USER = "/v1/apps/{acme}", "/v1/apps/{acme}/users/{alice}"
_S, _C = f"{_USER}/sessions/{{session}}", f"{_USER}/collections/{{collection}}"
NAMED, METADATA = {"name": "something new"}, {"metadata": {"changed": True}}
MESSAGE, NOTE = {"content": "hello", "is_user": True}, {"label": "x", "content": ""}

TABLE = {
    "GET /openapi.json": Row("/v1/openapi.json", ANYBODY | set(KEYS)),
    "POST /keys": Row("/v1/keys", A, query="app_id=x"),
    "POST /apps": Row("/v1/apps", A, NAMED),
    "POST /apps/list": Row("/v1/apps/list", A),
    "GET /apps/name/<name>": Row("/v1/apps/name/acme", A),
    "GET /apps/get_or_create/<name>": Row("/v1/apps/get_or_create/acme", A),
    "GET /apps": Row("/v1/apps", APP, query="app_id={acme}"),
    "PUT APP": Row(_APP, APP, METADATA),
    "POST APP/users": Row(f"{_APP}/users", APP, NAMED),
    "POST APP/users/list": Row(f"{_APP}/users/list", APP),
    "GET APP/users/name/<name>": Row(f"{_APP}/users/name/alice", APP),
    "GET APP/users/get_or_create/<name>": Row(f"{_APP}/users/get_or_create/alice", APP),
    "GET APP/users": Row(f"{_APP}/users", USER, query="user_id={alice}"),
    "PUT USER": Row(_USER, USER, METADATA),
    "POST USER/sessions": Row(f"{_USER}/sessions", USER, {}),
    "POST USER/sessions/list": Row(f"{_USER}/sessions/list", USER),
    "GET USER/sessions": Row(f"{_USER}/sessions", SESSION, query="session_id={session}"),
    "PUT SESSION": Row(_S, SESSION, METADATA),
    "DELETE SESSION": Row(_S, SESSION),
    "POST SESSION/chat": Row(f"{_S}/chat", SESSION, {"queries": "Where do I live?"}),
    "GET SESSION/clone": Row(f"{_S}/clone", SESSION),
    "POST SESSION/messages": Row(f"{_S}/messages", SESSION, MESSAGE),
    "POST SESSION/messages/batch": Row(f"{_S}/messages/batch", SESSION, {"messages": [MESSAGE]}),
    "POST SESSION/messages/list": Row(f"{_S}/messages/list", SESSION),
    "GET SESSION/messages/<message_id>": Row(f"{_S}/messages/{{message}}", SESSION),
    "PUT SESSION/messages/<message_id>": Row(f"{_S}/messages/{{message}}", SESSION, METADATA),
    "POST USER/metamessages": Row(f"{_USER}/metamessages", USER, NOTE),
    "POST USER/metamessages/list": Row(f"{_USER}/metamessages/list", USER),
    "GET USER/metamessages/<metamessage_id>": Row(f"{_USER}/metamessages/{{note}}", USER),
    "PUT USER/metamessages/<metamessage_id>": Row(f"{_USER}/metamessages/{{note}}", USER, METADATA),
    "POST USER/collections": Row(f"{_USER}/collections", COLLECTIONS, NAMED),
    "POST USER/collections/list": Row(f"{_USER}/collections/list", COLLECTIONS),
    "GET USER/collections/name/<name>": Row(f"{_USER}/collections/name/shelf", COLLECTIONS),
    "GET USER/collections": Row(
        f"{_USER}/collections", COLLECTION, query="collection_id={collection}"
    ),
    "PUT COLLECTION": Row(_C, COLLECTION, METADATA),
    "DELETE COLLECTION": Row(_C, COLLECTION),
    "POST COLLECTION/documents": Row(f"{_C}/documents", COLLECTION, {"content": "x"}),
    "POST COLLECTION/documents/list": Row(f"{_C}/documents/list", COLLECTION),
    "POST COLLECTION/documents/query": Row(f"{_C}/documents/query", COLLECTION, {"query": "x"}),
    "GET COLLECTION/documents/<document_id>": Row(f"{_C}/documents/{{document}}", COLLECTION),
    "PUT COLLECTION/documents/<document_id>": Row(
        f"{_C}/documents/{{document}}", COLLECTION, METADATA
    ),
    "DELETE COLLECTION/documents/<document_id>": Row(f"{_C}/documents/{{document}}", COLLECTION),
}
"""Method and rule, with APP, USER, SESSION and COLLECTION for their paths."""

SHORT = {
    "/v1/apps/<app_id>/users/<user_id>/sessions/<session_id>": "SESSION",
    "/v1/apps/<app_id>/users/<user_id>/collections/<collection_id>": "COLLECTION",
    "/v1/apps/<app_id>/users/<user_id>": "USER",
    "/v1/apps/<app_id>": "APP",
    "/v1": "",
}


@cache
def served() -> frozenset[str]:
    routes_served = set()
    for rule in create_app(load_settings(environ={})).url_map.iter_rules():
        if rule.rule.startswith("/v1/") and not rule.rule.startswith("/v1/workspaces"):
            short = next(
                name + rule.rule[len(prefix) :]
                for prefix, name in SHORT.items()
                if rule.rule.startswith(prefix)
            )
            routes_served |= {f"{method} {short}" for method in (rule.methods or set()) - {"HEAD"}}
    return frozenset(routes_served)


@pytest.mark.slow
def test_the_table_has_every_route() -> None:
    missing, extra = served() - TABLE.keys(), TABLE.keys() - served()
    assert not missing, (
        f"add a row to TABLE in {__file__} for each of {sorted(missing)}: its path, and "
        "the KEYS that may use it"
    )
    assert not extra, (
        f"take these rows out of TABLE in {__file__}, no route has them: {sorted(extra)}"
    )


@dataclass
class PopulatedStore:
    auth_client: AuthClient
    ids: PopulatedIds
    names: dict[str, str]

    def filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\{(\w+)\}", lambda match: self.names[match[1]], value)
        return value

    def ask(self, name: str, token: str | None) -> TestResponse:
        row = TABLE[name]
        options = {} if row.body is None else {"json": row.body}
        return self.auth_client.call(
            name.split(" ")[0],
            self.filled(row.path),
            token,
            query_string=self.filled(row.query),
            **options,
        )

    def key(self, name: str) -> str:
        return signed(
            {"t": "", **{claim: self.filled(value) for claim, value in KEYS[name].items()}}
        )


def opened() -> PopulatedStore:
    auth_client = AuthClient.open()
    ids = populate(auth_client)
    apps = {item["name"]: item["id"] for item in auth_client.do("POST", "/v1/apps/list")["items"]}
    users = {
        item["name"]: item["id"]
        for item in auth_client.do("POST", f"/v1/apps/{apps['acme']}/users/list")["items"]
    }
    user = f"/v1/apps/{apps['acme']}/users/{users['alice']}"
    session = auth_client.do("POST", f"{user}/sessions", {})["id"]
    collection = auth_client.do("POST", f"{user}/collections", {"name": "shelf"})["id"]
    names = {
        **apps,
        **users,
        "session": session,
        "room": auth_client.do("POST", "/v3/workspaces/acme/sessions", {"id": "room"})["uid"],
        "collection": collection,
        "others": auth_client.do(
            "POST", f"/v1/apps/{apps['acme']}/users/{users['bob']}/collections", {"name": "shelf"}
        )["id"],
        "message": auth_client.do("POST", f"{user}/sessions/{session}/messages", MESSAGE)["id"],
        "note": auth_client.do("POST", f"{user}/metamessages", NOTE)["id"],
        "document": auth_client.do(
            "POST", f"{user}/collections/{collection}/documents", {"content": "x"}
        )["id"],
    }
    return PopulatedStore(auth_client, ids, names)


@pytest.fixture(scope="module")
def filled() -> Iterator[PopulatedStore]:
    populated = opened()
    yield populated
    populated.auth_client.close()


@pytest.fixture
def unchanged(filled: PopulatedStore) -> Iterator[PopulatedStore]:
    """Data that refused requests must not change."""
    before = _contents(filled.auth_client)
    yield filled
    assert _contents(filled.auth_client) == before


@pytest.fixture
def populated(filled: PopulatedStore) -> Iterator[PopulatedStore]:
    """A world that a test may change: the next one finds it as it was."""
    with filled.auth_client.undone():
        yield filled


GUARDED = [name for name in TABLE if "openapi" not in name]


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDED)
def test_allowed_keys_are_accepted(
    filled: PopulatedStore, name: str, subtests: pytest.Subtests
) -> None:
    for key in KEYS.keys() & TABLE[name].allowed:
        with subtests.test(key=key), filled.auth_client.undone():
            answer = filled.ask(name, filled.key(key))
            assert answer.status_code == 200, answer.text[:200]


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDED)
def test_other_keys_are_refused(
    unchanged: PopulatedStore, name: str, subtests: pytest.Subtests
) -> None:
    for key in KEYS.keys() - TABLE[name].allowed:
        with subtests.test(key=key):
            answer = unchanged.ask(name, unchanged.key(key))
            assert answer.status_code == 401, f"{answer.status_code} {answer.text[:200]}"
            assert isinstance(answer.get_json()["detail"], str)


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDED)
def test_missing_and_invalid_keys_are_refused(unchanged: PopulatedStore, name: str) -> None:
    row = TABLE[name]
    fills = {
        "admin": unchanged.auth_client.admin,
        "revoked": unchanged.ids.revoked,
        "revoked_foreign": unchanged.ids.revoked_foreign,
    }
    for what in EVERYWHERE:
        header = HEADERS[what]
        headers = {} if header is None else {"Authorization": header.format(**fills)}
        answer = unchanged.auth_client.client.open(
            unchanged.filled(row.path),
            method=name.split(" ")[0],
            query_string=unchanged.filled(row.query),
            data=b"{",  # who may not come in is told so before the body is read
            content_type="application/json",
            headers=headers,
        )
        assert answer.status_code == 401, what


LOOK_UPS: dict[str, dict[str, str | None]] = {
    "/v1/apps": {"app": "acme", "workspace": "acme", "other app": "other"},
    f"{_APP}/users": {
        "user": "alice",
        "user, other app": "alice",
        "peer": "alice",
        "other user": "bob",
    },
    f"{_USER}/sessions": {
        "session": "session",
        "session, its user": "session",
        "session of v3": "session",
        "other session": "room",
    },
    f"{_USER}/collections": {
        "collection": "collection",
        "collection, its user": "collection",
        "other collection": None,
    },
}
"""What each look-up without an id finds by which key; None: what is not there."""


@pytest.mark.slow
@pytest.mark.parametrize("path", LOOK_UPS)
def test_look_up_routes_use_the_names_of_the_key(unchanged: PopulatedStore, path: str) -> None:
    for key in KEYS:
        answer = unchanged.auth_client.call("GET", unchanged.filled(path), unchanged.key(key))
        if key not in LOOK_UPS[path]:
            assert answer.status_code == 401, key
            continue
        owner = LOOK_UPS[path][key]
        assert answer.status_code == (404 if owner is None else 200), key
        assert owner is None or answer.get_json()["id"] == unchanged.names[owner], key


@pytest.mark.slow
def test_a_collection_key_opens_nothing_outside_its_collection(unchanged: PopulatedStore) -> None:
    for key in ("collection", "collection, its user"):
        token = unchanged.key(key)
        for path in (
            "/v3/workspaces/acme/peers/list",
            "/v3/workspaces/acme/conclusions/list",
            "/v3/workspaces",
        ):
            assert (
                unchanged.auth_client.call("POST", path, token, json={"id": "acme"}).status_code
                == 401
            )
        assert (
            unchanged.auth_client.call(
                "GET", "/v3/workspaces/acme/peers/alice/card", token
            ).status_code
            == 401
        )


# Keys that are made here


def new_key(populated: PopulatedStore, **query: str) -> str:
    answer = populated.auth_client.call(
        "POST",
        "/v1/keys",
        populated.auth_client.admin,
        query_string={name: populated.filled(value) for name, value in query.items()},
    )
    assert answer.status_code == 200, answer.text
    assert list(answer.get_json()) == ["key"]
    token: str = answer.get_json()["key"]
    return token


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "opens"),
    [
        ({"app_id": "{acme}"}, APP),
        ({"user_id": "{alice}"}, USER),
        ({"app_id": "{acme}", "user_id": "{alice}", "session_id": "{session}"}, SESSION),
        ({"collection_id": "{collection}"}, COLLECTION),
    ],
)
def test_a_minted_key_opens_its_own_subtree(
    populated: PopulatedStore, named: dict[str, str], opens: set[str]
) -> None:
    token = new_key(populated, **named)
    narrow = next(key for key in ("collection", "session", "user", "app") if key in opens)
    for name, row in TABLE.items():
        if "openapi" in name or name.startswith(
            ("DELETE", "PUT", "POST APP/users", "POST USER/collections")
        ):
            continue
        expected = populated.ask(name, populated.key(narrow)).status_code
        assert (expected == 401) == (narrow not in row.allowed), name
        assert populated.ask(name, token).status_code == expected, name


def test_a_key_works_until_it_expires(populated: PopulatedStore) -> None:
    token = new_key(populated, user_id="{alice}", expires_at="2999-01-01T00:00:00Z")
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["exp"] == 32472144000
    assert claims["us"] == populated.names["alice"]
    assert populated.ask("PUT USER", token).status_code == 200
    past = populated.auth_client.call(
        "POST",
        "/v1/keys",
        populated.auth_client.admin,
        query_string={"user_id": "x", "expires_at": "2020-01-01"},
    )
    assert past.status_code == 422


def test_a_key_without_names_is_refused(populated: PopulatedStore) -> None:
    answer = populated.auth_client.call("POST", "/v1/keys", populated.auth_client.admin)
    assert answer.status_code == 422
    (problem,) = answer.get_json()["detail"]
    assert (
        problem["msg"]
        == "At least one of app_id, user_id, session_id, or collection_id must be provided"
    )


def test_keys_of_this_generation_are_listed_and_revoked(populated: PopulatedStore) -> None:
    token = new_key(populated, user_id="{alice}")
    key = populated.auth_client.do("GET", "/v3/keys?reverse=true&size=1")["items"][0]
    assert (key["workspace_id"], key["peer_id"], key["admin"]) == ("acme", "alice", False)
    assert key["label"] == f"user {populated.names['alice']}"
    assert populated.ask("PUT USER", token).status_code == 200
    populated.auth_client.do("DELETE", f"/v3/keys/{key['id']}")
    assert populated.ask("PUT USER", token).status_code == 401


def test_a_collection_key_is_not_listed_as_a_workspace_key(populated: PopulatedStore) -> None:
    new_key(populated, app_id="{acme}", user_id="{alice}", collection_id="{collection}")
    new_key(populated, app_id="x" * 300)
    of_nothing, of_collection = populated.auth_client.do("GET", "/v3/keys?reverse=true&size=2")[
        "items"
    ]
    assert (of_collection["workspace_id"], of_collection["label"]) == (
        "acme",
        f"collection {populated.names['collection']}",
    )
    assert (of_nothing["workspace_id"], of_nothing["label"]) == (None, f"app {'x' * 196}")


def test_a_revoked_foreign_key_is_listed_with_its_names(populated: PopulatedStore) -> None:
    api_keys.revoke_token(populated.auth_client.runtime, ALL, populated.key("user"))
    (key,) = [
        item
        for item in populated.auth_client.do("GET", "/v3/keys?size=100")["items"]
        if item["peer_id"] == "alice"
    ]
    assert (key["label"], key["workspace_id"], key["revoked_at"] is not None) == (
        "without an id, goes by its names",
        "acme",
        True,
    )


def test_clients_of_the_second_generation_mint_keys_here(populated: PopulatedStore) -> None:
    token = new_key(populated, workspace_id="acme", peer_id="alice")
    assert (
        populated.auth_client.call("GET", "/v3/workspaces/acme/peers/alice/card", token).status_code
        == 200
    )
    assert (
        populated.auth_client.call("GET", "/v3/workspaces/acme/peers/bob/card", token).status_code
        == 401
    )


def test_without_authentication_no_keys_are_minted() -> None:
    client = create_app(
        load_settings(environ={}, overrides={"DB_CONNECTION_URI": "memory://"})
    ).test_client()
    answer = client.post("/v1/keys?app_id=x")
    assert (answer.status_code, answer.get_json()) == (405, {"detail": "Feature is disabled"})
